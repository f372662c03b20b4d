//! Random functions under a seed: the same render gives the same bytes, each call its own.
use super::Shared;
use crate::limits::{Limits, Meter};
use crate::template::exec::{Render, StackGuard};
use crate::template::set::TemplateSet;
use crate::value::Value;

fn render(text: &str, file: &str, seed: Option<u8>) -> String {
    let mut set = TemplateSet::default();
    set.add(crate::template::parse(file, text.as_bytes().to_vec()).unwrap());
    let shared =
        Shared::new(Meter::start(&Limits::default()), seed.map(|byte| [byte; 32]), (1_700_000_000, 0));
    shared.start_file(file);
    let render = Render::new(&shared, &set, None, StackGuard::here());
    String::from_utf8(render.file(file, &Value::Nil).unwrap()).unwrap()
}

const ALL: &str = r#"{{ randAlphaNum 20 }} {{ uuidv4 }} {{ randBytes 9 }} {{ randInt 0 1000000 }} {{ shuffle "abcdefghijklm" }}
{{ bcrypt "x" }} {{ encryptAES "k" "v" }} {{ genPrivateKey "ecdsa" }}{{ genPrivateKey "ed25519" }}
{{- $ca := genCA "ca" 365 }}{{ $c := genSignedCert "a" (list "1.2.3.4") (list "b.c") 30 $ca }}{{ $ca.Cert }}{{ $c.Cert }}{{ $c.Key }}"#;

#[test]
fn the_same_seed_gives_the_same_bytes() {
    assert_eq!(render(ALL, "c/a.yaml", Some(7)), render(ALL, "c/a.yaml", Some(7)));
}

#[test]
fn another_seed_file_or_call_gives_other_bytes() {
    let text = "{{ randAlphaNum 20 }}";
    let one = render(text, "c/a.yaml", Some(7));
    assert_ne!(one, render(text, "c/a.yaml", Some(8)));
    assert_ne!(one, render(text, "c/b.yaml", Some(7)));
    let two = render("{{ randAlphaNum 20 }} {{ randAlphaNum 20 }}", "c/a.yaml", Some(7));
    let (first, second) = two.split_once(' ').unwrap();
    assert_eq!(first, one);
    assert_ne!(second, one);
}

#[test]
fn without_a_seed_bytes_differ() {
    let text = "{{ randAlphaNum 20 }}";
    assert_ne!(render(text, "c/a.yaml", None), render(text, "c/a.yaml", None));
}

#[test]
fn a_signed_certificate_names_its_issuer_and_verifies_with_its_key() {
    use x509_cert::Certificate;
    use x509_cert::der::{DecodePem as _, Encode as _};
    let text = r#"{{ $ca := genCA "ca" 365 }}{{ $c := genSignedCert "a" nil (list "b.c") 30 $ca }}{{ $ca.Cert }}|{{ $c.Cert }}"#;
    let shown = render(text, "c/a.yaml", Some(7));
    let (ca, cert) = shown.split_once('|').unwrap();
    let (ca, cert) = (Certificate::from_pem(ca).unwrap(), Certificate::from_pem(cert).unwrap());
    assert_eq!(cert.tbs_certificate.issuer, ca.tbs_certificate.subject);
    let info = ca.tbs_certificate.subject_public_key_info.to_der().unwrap();
    let key = <rsa::RsaPublicKey as rsa::pkcs8::DecodePublicKey>::from_public_key_der(&info).unwrap();
    let verifier = rsa::pkcs1v15::VerifyingKey::<rsa::sha2::Sha256>::new(key);
    let signature = rsa::pkcs1v15::Signature::try_from(cert.signature.raw_bytes()).unwrap();
    rsa::signature::Verifier::verify(&verifier, &cert.tbs_certificate.to_der().unwrap(), &signature).unwrap();
}
