//! Signs certificates for names and addresses.
use std::any::Any;
use std::net::IpAddr;
use std::time::Duration;

use der::asn1::{
    Any as Asn1, BitString, Ia5String, OctetString, PrintableStringRef, SetOfVec, UtcTime, Utf8StringRef,
};
use der::flagset::FlagSet;
use der::{Decode as _, Encode as _};
use sha1::Digest as _;
use x509_cert::attr::AttributeTypeAndValue;
use x509_cert::certificate::{Certificate, TbsCertificate, Version};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectAltName,
    SubjectKeyIdentifier,
};
use x509_cert::ext::{AsExtension, Extension};
use x509_cert::name::{Name, RdnSequence, RelativeDistinguishedName};
use x509_cert::serial_number::SerialNumber;
use x509_cert::time::{Time, Validity};

use super::super::args::{Out, any, bytes, def, fail, int, lossy};
use super::super::{Ctx, FuncDef, FuncError, Param};
use super::key::{CERTIFICATE_RSA, PrivateKey};
use super::pem;
use crate::random::Stream;
use crate::value::{Kind, Object, Text, Value};

use Param::{Int, List, String as Str};

const CERTIFICATE: Param = Param::Object("sprig.certificate");

pub(crate) const FUNCS: &[FuncDef] = &[
    def("genCA", &[Str, Int], |c, a| {
        let wanted = Wanted { ca: true, ..Wanted::new(&lossy(a, 0), int(a, 1)) };
        issue(c, &wanted, None, None)
    }),
    def("genCAWithKey", &[Str, Int, Str], |c, a| {
        let wanted = Wanted { ca: true, ..Wanted::new(&lossy(a, 0), int(a, 1)) };
        issue(c, &wanted, None, Some(given_key(&lossy(a, 2))?))
    }),
    def("genSelfSignedCert", &[Str, List, List, Int], |c, a| issue(c, &Wanted::of(a)?, None, None)),
    def("genSelfSignedCertWithKey", &[Str, List, List, Int, Str], |c, a| {
        let key = given_key(&lossy(a, 4))?;
        issue(c, &Wanted::of(a)?, None, Some(key))
    }),
    def("genSignedCert", &[Str, List, List, Int, CERTIFICATE], |c, a| {
        issue(c, &Wanted::of(a)?, Some(&Issuer::of(any(a, 4))?), None)
    }),
    def("genSignedCertWithKey", &[Str, List, List, Int, CERTIFICATE, Str], |c, a| {
        let key = given_key(&lossy(a, 5))?;
        issue(c, &Wanted::of(a)?, Some(&Issuer::of(any(a, 4))?), Some(key))
    }),
    def("buildCustomCert", &[Str, Str], build_custom),
];

/// Uses of a certificate: to serve and to be a client.
const SERVER: const_oid::ObjectIdentifier = const_oid::ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.1");
const CLIENT: const_oid::ObjectIdentifier = const_oid::ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.2");

/// What the functions give: a certificate and its key, both in PEM.
#[derive(Debug)]
struct CertificateObject {
    cert: Text,
    key: Text,
}

impl Object for CertificateObject {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn type_name(&self) -> &'static str {
        "sprig.certificate"
    }

    fn kind(&self) -> Kind {
        Kind::Struct
    }

    fn field(&self, name: &str) -> Option<Value> {
        match name {
            "Cert" => Some(Value::Text(self.cert.clone())),
            "Key" => Some(Value::Text(self.key.clone())),
            _ => None,
        }
    }

    fn fields(&self) -> Vec<Value> {
        vec![Value::Text(self.cert.clone()), Value::Text(self.key.clone())]
    }

    fn plain(&self) -> Value {
        Value::map([
            (Text::from("Cert"), Value::Text(self.cert.clone())),
            (Text::from("Key"), Value::Text(self.key.clone())),
        ])
    }
}

/// What a certificate shall say.
struct Wanted {
    name: String,
    ips: Vec<IpAddr>,
    hosts: Vec<String>,
    days: i64,
    ca: bool,
}

impl Wanted {
    fn new(name: &str, days: i64) -> Self {
        Self { name: name.to_owned(), ips: Vec::new(), hosts: Vec::new(), days, ca: false }
    }

    /// From a name, addresses, host names and days.
    fn of(args: &[Value]) -> Result<Self, FuncError> {
        let texts = |i: usize, what: &str| {
            let items = any(args, i).as_list().map_or(&[][..], |list| list.items());
            let text = |item: &Value| match item {
                Value::Text(text) => Ok(text.lossy().into_owned()),
                other => {
                    let shown = String::from_utf8_lossy(&crate::gofmt::display(other)).into_owned();
                    fail(format!("error parsing {what}: {shown} is not a string"))
                }
            };
            items.iter().map(text).collect::<Result<Vec<_>, _>>()
        };
        let ip =
            |text: &String| text.parse::<IpAddr>().or_else(|_| fail(format!("error parsing ip: {text}")));
        let ips = texts(1, "ip")?.iter().map(ip).collect::<Result<_, _>>()?;
        let hosts = texts(2, "alternate dns")?;
        Ok(Self { name: lossy(args, 0), ips, hosts, days: int(args, 3), ca: false })
    }
}

/// A certificate authority given to a function.
struct Issuer {
    certificate: Certificate,
    key: PrivateKey,
}

impl Issuer {
    fn of(value: &Value) -> Result<Self, FuncError> {
        let object = value.as_object().and_then(|object| object.as_any().downcast_ref::<CertificateObject>());
        let Some(object) = object else { return fail("a sprig.certificate is expected") };
        let Some((_, der)) = pem::decode(&object.cert.lossy()) else {
            return fail("unable to decode certificate");
        };
        let certificate = Certificate::from_der(&der).map_err(|error| {
            FuncError::new(format!("error parsing certificate: decodedSignerCert.Bytes: {error}"))
        })?;
        let key = PrivateKey::from_pem(&object.key.lossy())
            .map_err(|error| FuncError::new(format!("error parsing private key: {error}")))?;
        Ok(Self { certificate, key })
    }
}

fn given_key(text: &str) -> Result<PrivateKey, FuncError> {
    PrivateKey::from_pem(text).map_err(|error| FuncError::new(format!("parsing private key: {error}")))
}

/// Makes a certificate, self-signed without an issuer, with a new RSA key unless one is given.
fn issue(ctx: &mut Ctx<'_>, wanted: &Wanted, issuer: Option<&Issuer>, key: Option<PrivateKey>) -> Out {
    ctx.shared.meter.check_time()?;
    let mut stream = Stream::of_call(ctx)?;
    let key = match key {
        Some(key) => key,
        None => PrivateKey::rsa(CERTIFICATE_RSA, &mut stream, &ctx.shared.meter)?,
    };
    let certificate = certificate(ctx, wanted, issuer, &key, &mut stream)
        .map_err(|error| FuncError::new(format!("error creating certificate: {error}")))?;
    let cert = Text::from(pem::encode("CERTIFICATE", &certificate));
    let key = Text::from(key.to_pem()?);
    ctx.charge(cert.len() + key.len())?;
    Ok(Value::object(CertificateObject { cert, key }))
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn certificate(
    ctx: &Ctx<'_>,
    wanted: &Wanted,
    issuer: Option<&Issuer>,
    key: &PrivateKey,
    stream: &mut Stream,
) -> Result<Vec<u8>, String> {
    let subject = subject(&wanted.name)?;
    let public = key.public_info().map_err(text)?;
    let signer = issuer.map_or(key, |issuer| &issuer.key);
    if let Some(issuer) = issuer
        && issuer.certificate.tbs_certificate.subject_public_key_info != signer.public_info().map_err(text)?
    {
        return Err("x509: provided PrivateKey doesn't match parent's PublicKey".to_owned());
    }
    let issuer_name =
        issuer.map_or_else(|| subject.clone(), |issuer| issuer.certificate.tbs_certificate.subject.clone());
    let algorithm = signer.algorithm();
    let tbs = TbsCertificate {
        version: Version::V3,
        serial_number: serial(stream)?,
        signature: algorithm.clone(),
        issuer: issuer_name.clone(),
        validity: validity(ctx, wanted.days)?,
        extensions: Some(extensions(wanted, &subject, &issuer_name, &public, issuer)?),
        subject,
        subject_public_key_info: public,
        issuer_unique_id: None,
        subject_unique_id: None,
    };
    let signature: BitString = signer.sign(&tbs.to_der().map_err(text)?).map_err(text)?;
    Certificate { tbs_certificate: tbs, signature_algorithm: algorithm, signature }.to_der().map_err(text)
}

/// A positive serial number of up to 128 bits.
fn serial(stream: &mut Stream) -> Result<SerialNumber, String> {
    let mut bytes = [0; 17];
    for (slot, byte) in bytes.iter_mut().skip(1).zip(stream.bytes::<16>()) {
        *slot = byte;
    }
    let start = bytes.iter().position(|byte| *byte != 0).unwrap_or(16);
    // The leading zero keeps the number positive.
    let first = if bytes.get(start).is_some_and(|byte| *byte >= 0x80) { start - 1 } else { start };
    SerialNumber::new(bytes.get(first..).unwrap_or_default()).map_err(text)
}

fn validity(ctx: &Ctx<'_>, days: i64) -> Result<Validity, String> {
    let start = ctx.shared.now.0;
    let time = |seconds: i64| {
        let since = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        match UtcTime::from_unix_duration(since) {
            Ok(time) => Ok(Time::UtcTime(time)),
            Err(_) => {
                der::asn1::GeneralizedTime::from_unix_duration(since).map(Time::GeneralTime).map_err(text)
            }
        }
    };
    let end = start.saturating_add(days.saturating_mul(86_400));
    Ok(Validity { not_before: time(start)?, not_after: time(end)? })
}

/// A name of nothing but a common name.
fn subject(common_name: &str) -> Result<Name, String> {
    const COMMON_NAME: const_oid::ObjectIdentifier = const_oid::ObjectIdentifier::new_unwrap("2.5.4.3");
    if common_name.is_empty() {
        return Ok(Name::default());
    }
    // Go does not count the asterisk among printable characters, and the ampersand neither.
    let printable = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+,-./:=? ".contains(&byte);
    let value = if common_name.bytes().all(printable) {
        Asn1::encode_from(&PrintableStringRef::new(common_name).map_err(text)?)
    } else {
        Asn1::encode_from(&Utf8StringRef::new(common_name).map_err(text)?)
    };
    let attribute = AttributeTypeAndValue { oid: COMMON_NAME, value: value.map_err(text)? };
    let set = SetOfVec::try_from(vec![attribute]).map_err(text)?;
    Ok(RdnSequence(vec![RelativeDistinguishedName(set)]))
}

/// The extensions in the order Go writes them.
fn extensions(
    wanted: &Wanted,
    subject: &Name,
    issuer_name: &Name,
    public: &p256::pkcs8::spki::SubjectPublicKeyInfoOwned,
    issuer: Option<&Issuer>,
) -> Result<Vec<Extension>, String> {
    let mut usage: FlagSet<KeyUsages> = KeyUsages::KeyEncipherment | KeyUsages::DigitalSignature;
    if wanted.ca {
        usage |= KeyUsages::KeyCertSign;
    }
    let mut list = vec![
        extension(&KeyUsage(usage), true)?,
        extension(&ExtendedKeyUsage(vec![SERVER, CLIENT]), false)?,
        extension(&BasicConstraints { ca: wanted.ca, path_len_constraint: None }, true)?,
    ];
    if wanted.ca {
        let digest = sha1::Sha1::digest(public.subject_public_key.raw_bytes());
        let id = OctetString::new(digest.as_slice()).map_err(text)?;
        list.push(extension(&SubjectKeyIdentifier(id), false)?);
    }
    if let Some(id) = issuer.filter(|_| issuer_name != subject).and_then(key_identifier) {
        let authority =
            AuthorityKeyIdentifier { key_identifier: Some(id), ..AuthorityKeyIdentifier::default() };
        list.push(extension(&authority, false)?);
    }
    let host = |host: &String| match Ia5String::new(host) {
        Ok(name) => Ok(GeneralName::DnsName(name)),
        Err(_) => Err(format!("x509: {host:?} cannot be encoded as an IA5String")),
    };
    let mut names = wanted.hosts.iter().map(host).collect::<Result<Vec<_>, _>>()?;
    for ip in &wanted.ips {
        let octets = match ip.to_canonical() {
            IpAddr::V4(ip) => ip.octets().to_vec(),
            IpAddr::V6(ip) => ip.octets().to_vec(),
        };
        names.push(GeneralName::IpAddress(OctetString::new(octets).map_err(text)?));
    }
    if !names.is_empty() {
        list.push(extension(&SubjectAltName(names), subject.0.is_empty())?);
    }
    Ok(list)
}

fn extension<T: AsExtension + const_oid::AssociatedOid>(
    value: &T,
    critical: bool,
) -> Result<Extension, String> {
    let bytes = value.to_der().map_err(text)?;
    Ok(Extension { extn_id: T::OID, critical, extn_value: OctetString::new(bytes).map_err(text)? })
}

/// The identifier an issuer gives its own key.
fn key_identifier(issuer: &Issuer) -> Option<OctetString> {
    let found = issuer.certificate.tbs_certificate.get::<SubjectKeyIdentifier>().ok()??;
    Some(found.1.0)
}

fn build_custom(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    ctx.charge(bytes(args, 0).len() + bytes(args, 1).len())?;
    let decode = |i: usize, what: &str| {
        super::super::base::decode64(bytes(args, i))
            .map_err(|_| FuncError::new(format!("unable to decode base64 {what}")))
    };
    let (cert, key) = (decode(0, "certificate")?, decode(1, "private key")?);
    let Some((_, der)) = pem::decode(&String::from_utf8_lossy(&cert)) else {
        return fail("unable to decode certificate");
    };
    if let Err(error) = Certificate::from_der(&der) {
        return fail(format!("error parsing certificate: decodedCert.Bytes: {error}"));
    }
    PrivateKey::from_pem(&String::from_utf8_lossy(&key))
        .map_err(|error| FuncError::new(format!("error parsing private key: {error}")))?;
    Ok(Value::object(CertificateObject { cert: Text::from(cert), key: Text::from(key) }))
}
