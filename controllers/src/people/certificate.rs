//! Makes keys and requests for certificates, and checks what a cluster signed before anybody relies on it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::people::Person;
use jiff::{SignedDuration, Timestamp};
use rcgen::{KeyPair, PublicKeyData as _, SigningKey as _};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::der::asn1::{Any, BitString, ObjectIdentifier, SetOfVec, Utf8StringRef};
use x509_cert::der::{Decode as _, Encode as _, EncodePem as _, pem::LineEnding};
use x509_cert::name::{RdnSequence, RelativeDistinguishedName};
use x509_cert::request::{CertReq, CertReqInfo, Version};
use x509_cert::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use zeroize::Zeroizing;

use crate::remote::kubeconfig::pem_of;

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const ORGANIZATION: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.10");
/// ECDSA with SHA-256, what [`KeyPair::generate`]'s keys sign with.
const SIGNATURE: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
/// Longest chain.
const CERTIFICATES: usize = 8;
/// Largest text of one.
const BYTES: usize = 64 << 10;
/// A certificate that begins even later is of a cluster whose clock is wrong.
const AHEAD: SignedDuration = SignedDuration::from_mins(5);

/// A key that nobody else has. It is never written but into the Secret of its person.
pub(super) struct Key(KeyPair);

/// A certificate that is what was asked for.
pub(super) struct Certificate {
    /// PEM.
    pub text: String,
    /// When it ends.
    pub expires: Timestamp,
}

impl Key {
    pub fn new() -> Option<Self> {
        KeyPair::generate().ok().map(Self)
    }

    /// The request for a certificate of a person, as PEM. (rcgen's own has room for one group.)
    pub fn request(&self, person: &Person) -> Option<String> {
        let part = |oid: ObjectIdentifier, text: &str| {
            let value = Any::from(Utf8StringRef::new(text).ok()?);
            let set = SetOfVec::try_from(vec![AttributeTypeAndValue { oid, value }]).ok()?;
            Some(RelativeDistinguishedName(set))
        };
        let groups = person.groups.iter().map(|group| part(ORGANIZATION, group));
        let subject: Option<Vec<_>> = groups.chain([part(COMMON_NAME, &person.user)]).collect();
        let info = CertReqInfo {
            version: Version::V1,
            subject: RdnSequence(subject?),
            public_key: SubjectPublicKeyInfoOwned::from_der(&self.0.subject_public_key_info()).ok()?,
            attributes: SetOfVec::new(),
        };
        let signature = self.0.sign(&info.to_der().ok()?).ok()?;
        let request = CertReq {
            info,
            algorithm: AlgorithmIdentifierOwned { oid: SIGNATURE, parameters: None },
            signature: BitString::from_bytes(&signature).ok()?,
        };
        request.to_pem(LineEnding::LF).ok()
    }

    /// The key in Base64 of PEM.
    pub fn text(&self) -> Zeroizing<String> {
        let text = Zeroizing::new(self.0.serialize_pem());
        Zeroizing::new(STANDARD.encode(text.as_bytes()))
    }

    /// Whether a chain begins with a certificate of this key for this person, that holds now. The sentence says what is wrong with it, and quotes
    /// nothing of it.
    pub fn judge(&self, pem: &[u8], person: &Person, now: Timestamp) -> Result<Certificate, &'static str> {
        const BROKEN: &str = "the cluster signed what is no certificate in PEM";
        if pem.len() > BYTES {
            return Err("the cluster signed a certificate larger than 64 KiB");
        }
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(pem).take(CERTIFICATES).collect();
        let chain = chain.map_err(|_| BROKEN)?;
        let leaf = chain.first().ok_or(BROKEN)?;
        let (_, leaf) = X509Certificate::from_der(leaf).map_err(|_| BROKEN)?;
        if leaf.public_key().raw != self.0.subject_public_key_info() {
            return Err("the cluster signed a certificate of another key");
        }
        let users = texts(leaf.subject().iter_common_name());
        let mut groups = texts(leaf.subject().iter_organization());
        groups.sort();
        if users != [person.user.as_str()] || groups != person.groups {
            return Err("the cluster signed a certificate for somebody else");
        }
        let client = leaf.extended_key_usage().ok().flatten().is_some_and(|usage| usage.value.client_auth);
        if !client {
            return Err("the cluster signed a certificate that is not for clients");
        }
        let [begins, ends] = [leaf.validity().not_before, leaf.validity().not_after]
            .map(|time| Timestamp::from_second(time.timestamp()));
        let (Ok(begins), Ok(expires)) = (begins, ends) else { return Err(BROKEN) };
        if begins.duration_since(now) > AHEAD || expires <= now {
            return Err(
                "the cluster signed a certificate that does not hold now: compare its clock with the hub's",
            );
        }
        Ok(Certificate { text: pem_of(&chain), expires })
    }
}

/// Parts of a name as texts; none where one is no text.
fn texts<'a, 'b: 'a>(
    parts: impl Iterator<Item = &'a x509_parser::x509::AttributeTypeAndValue<'b>>,
) -> Vec<String> {
    let texts: Option<Vec<String>> = parts.map(|part| part.as_str().ok().map(str::to_owned)).collect();
    texts.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rcgen::{
        CertificateParams, CertificateSigningRequestParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
        KeyUsagePurpose, date_time_ymd,
    };
    use x509_parser::certification_request::X509CertificationRequest;

    use super::*;

    fn person() -> Person {
        Person {
            user: "emco:team-a:edge:ann".to_owned(),
            groups: vec!["emco:team-a:edge:dev".to_owned()],
            namespace: "shop".to_owned(),
            account: "emco-edge-user-00000000".to_owned(),
        }
    }

    /// What an authority signs of a request, with changes.
    fn signed(request: &str, change: impl FnOnce(&mut CertificateParams)) -> String {
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = Issuer::new(authority, KeyPair::generate().unwrap());
        let mut request = CertificateSigningRequestParams::from_pem(request).unwrap();
        request.params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        request.params.not_before = date_time_ymd(2026, 1, 1);
        request.params.not_after = date_time_ymd(2027, 1, 1);
        change(&mut request.params);
        request.signed_by(&issuer).unwrap().pem()
    }

    fn now() -> Timestamp {
        "2026-06-01T00:00:00Z".parse().unwrap()
    }

    fn refused(change: impl FnOnce(&mut CertificateParams)) -> Option<&'static str> {
        let key = Key::new().unwrap();
        let pem = signed(&key.request(&person()).unwrap(), change);
        key.judge(pem.as_bytes(), &person(), now()).err()
    }

    #[test]
    fn a_request_names_the_person_and_all_groups() {
        let person = Person { groups: ["a", "b", "c"].map(str::to_owned).to_vec(), ..person() };
        let pem = Key::new().unwrap().request(&person).unwrap();
        let der = rustls::pki_types::CertificateSigningRequestDer::from_pem_slice(pem.as_bytes()).unwrap();
        let (_, request) = X509CertificationRequest::from_der(&der).unwrap();
        let subject = &request.certification_request_info.subject;
        assert_eq!(subject.to_string(), "O=a, O=b, O=c, CN=emco:team-a:edge:ann");
        // rcgen checks the signature.
        CertificateSigningRequestParams::from_pem(&pem).unwrap();
    }

    #[test]
    fn a_certificate_of_the_key_for_the_person_is_taken() {
        let key = Key::new().unwrap();
        let pem = signed(&key.request(&person()).unwrap(), |_| {});
        let taken = key.judge(pem.as_bytes(), &person(), now()).map_err(str::to_owned).unwrap();
        assert_eq!(taken.expires.to_string(), "2027-01-01T00:00:00Z");
        // Line by line as it came.
        assert_eq!(taken.text, pem.replace("\r\n", "\n"));
    }

    #[test]
    fn a_certificate_for_somebody_else_is_refused() {
        let rename = |type_: DnType, text: &'static str| {
            move |params: &mut CertificateParams| {
                params.distinguished_name.remove(type_.clone());
                params.distinguished_name.push(type_, text);
            }
        };
        let else_ = Some("the cluster signed a certificate for somebody else");
        assert_eq!(refused(rename(DnType::CommonName, "emco:team-b:edge:bob")), else_);
        assert_eq!(refused(rename(DnType::OrganizationName, "system:masters")), else_);
    }

    #[test]
    fn a_certificate_of_another_key_is_refused() {
        let (mine, other) = (Key::new().unwrap(), Key::new().unwrap());
        let pem = signed(&other.request(&person()).unwrap(), |_| {});
        let said = mine.judge(pem.as_bytes(), &person(), now()).err();
        assert_eq!(said, Some("the cluster signed a certificate of another key"));
    }

    #[test]
    fn a_certificate_that_is_of_no_use_is_refused() {
        assert_eq!(
            refused(|params| params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth]),
            Some("the cluster signed a certificate that is not for clients")
        );
        for (from, to) in [(2024, 2025), (2028, 2029)] {
            let said = refused(|params| {
                (params.not_before, params.not_after) = (date_time_ymd(from, 1, 1), date_time_ymd(to, 1, 1));
            });
            assert!(said.unwrap().contains("does not hold now"), "{said:?}");
        }
        let key = Key::new().unwrap();
        for text in ["", "garbage", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            assert!(key.judge(text.as_bytes(), &person(), now()).is_err(), "{text}");
        }
    }
}
