//! Private keys: made from a random stream or read from PEM, written as PEM, used to sign.
use const_oid::ObjectIdentifier;
use der::asn1::{AnyRef, BitString, UintRef};
use der::{Decode as _, Encode as _, Sequence};
use ed25519_dalek::SigningKey;
use p256::elliptic_curve::sec1::ToEncodedPoint as _;
use p256::pkcs8::spki::{AlgorithmIdentifierOwned, SubjectPublicKeyInfoOwned};
use rsa::pkcs1::{DecodeRsaPrivateKey as _, EncodeRsaPrivateKey as _};
use rsa::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, EncodePublicKey as _};
use rsa::signature::{SignatureEncoding as _, Signer as _};
use rsa::{BigUint, RsaPrivateKey, pkcs1v15};
use sec1::EcPrivateKey;

use super::super::FuncError;
use super::{pem, prime};
use crate::limits::Meter;
use crate::random::Stream;

const RSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.11");
const ECDSA_SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.2");
const ECDSA_SHA384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.3");
const ECDSA_SHA512: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.4.3.4");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

/// Bits of the RSA key `genPrivateKey` makes; certificates have keys of 2048.
const LARGE_RSA: usize = 4096;
pub(super) const CERTIFICATE_RSA: usize = 2048;
const RSA_EXPONENT: u32 = 65_537;

/// A private key of any kind templates can make or give.
pub(super) enum PrivateKey {
    Rsa(Box<RsaPrivateKey>),
    P256(p256::SecretKey),
    P384(p384::SecretKey),
    P521(p521::SecretKey),
    Ed25519(Box<SigningKey>),
    Dsa(Vec<u8>),
}

/// How DSA keys are written.
#[derive(Sequence)]
struct DsaKey<'a> {
    version: u8,
    p: UintRef<'a>,
    q: UintRef<'a>,
    g: UintRef<'a>,
    y: UintRef<'a>,
    x: UintRef<'a>,
}

fn wrong(error: impl std::fmt::Display) -> FuncError {
    FuncError::new(error.to_string())
}

impl PrivateKey {
    /// A new key of a kind by its name; `None` for an unknown one.
    pub fn generate(kind: &str, stream: &mut Stream, meter: &Meter) -> Result<Option<Self>, FuncError> {
        Ok(Some(match kind {
            "" | "rsa" => Self::rsa(LARGE_RSA, stream, meter)?,
            "ecdsa" => Self::P256(p256::SecretKey::random(stream.rng())),
            "ed25519" => Self::Ed25519(Box::new(SigningKey::from_bytes(&stream.bytes()))),
            "dsa" => Self::Dsa(generate_dsa(stream, meter)?),
            _ => return Ok(None),
        }))
    }

    /// A new RSA key. Its primes are searched for here because the library's search cannot be interrupted.
    pub fn rsa(bits: usize, stream: &mut Stream, meter: &Meter) -> Result<Self, FuncError> {
        loop {
            let primes = vec![prime::prime(bits / 2, stream, meter)?, prime::prime(bits / 2, stream, meter)?];
            // Very few primes do not go with each other or with the exponent.
            if let Ok(key) = RsaPrivateKey::from_primes(primes, BigUint::from(RSA_EXPONENT)) {
                return Ok(Self::Rsa(Box::new(key)));
            }
        }
    }

    pub fn from_pem(text: &str) -> Result<Self, FuncError> {
        let Some((label, bytes)) = pem::decode(text) else { return Err(wrong("no PEM data in input")) };
        match label.as_str() {
            "PRIVATE KEY" => Self::from_pkcs8(&bytes),
            "RSA PRIVATE KEY" => RsaPrivateKey::from_pkcs1_der(&bytes)
                .map(|key| Self::Rsa(Box::new(key)))
                .map_err(|error| wrong(format!("parsing RSA private key from PEM: {error}"))),
            "EC PRIVATE KEY" => Self::from_sec1(&bytes, None)
                .map_err(|error| wrong(format!("parsing EC private key from PEM: {error}"))),
            "DSA PRIVATE KEY" => DsaKey::from_der(&bytes)
                .map(|_| Self::Dsa(bytes.clone()))
                .map_err(|error| wrong(format!("parsing DSA private key from PEM: {error}"))),
            label => match label.strip_suffix(" PRIVATE KEY") {
                Some(kind) => Err(wrong(format!("invalid private key type {kind}"))),
                None => Err(wrong(format!("no private key data in PEM block of type {label}"))),
            },
        }
    }

    fn from_pkcs8(bytes: &[u8]) -> Result<Self, FuncError> {
        let read = || -> Result<Self, String> {
            let info = rsa::pkcs8::PrivateKeyInfo::from_der(bytes).map_err(|error| error.to_string())?;
            if info.algorithm.oid == ED25519 {
                let key = SigningKey::from_pkcs8_der(bytes).map_err(|error| error.to_string())?;
                return Ok(Self::Ed25519(Box::new(key)));
            }
            if info.algorithm.oid == rsa::pkcs1::ALGORITHM_OID {
                let key = RsaPrivateKey::from_pkcs8_der(bytes).map_err(|error| error.to_string())?;
                return Ok(Self::Rsa(Box::new(key)));
            }
            let curve = info.algorithm.parameters_oid().map_err(|error| error.to_string())?;
            Self::from_sec1(info.private_key, Some(curve))
        };
        read().map_err(|error| wrong(format!("decoding PEM as PKCS#8: {error}")))
    }

    /// An elliptic curve key; its curve is named inside or by the caller.
    fn from_sec1(bytes: &[u8], curve: Option<ObjectIdentifier>) -> Result<Self, String> {
        let key = EcPrivateKey::from_der(bytes).map_err(|error| error.to_string())?;
        let named = key.parameters.and_then(sec1::EcParameters::named_curve);
        let text = |error: p256::elliptic_curve::Error| error.to_string();
        match curve.or(named) {
            Some(P256) => p256::SecretKey::from_slice(key.private_key).map(Self::P256).map_err(text),
            Some(P384) => p384::SecretKey::from_slice(key.private_key).map(Self::P384).map_err(text),
            Some(P521) => p521::SecretKey::from_slice(key.private_key).map(Self::P521).map_err(text),
            _ => Err("x509: unknown elliptic curve".to_owned()),
        }
    }

    pub fn to_pem(&self) -> Result<String, FuncError> {
        let ec = |curve: ObjectIdentifier, secret: &[u8], point: &[u8]| {
            let key = EcPrivateKey {
                private_key: secret,
                parameters: Some(sec1::EcParameters::NamedCurve(curve)),
                public_key: Some(point),
            };
            key.to_der().map(|bytes| pem::encode("EC PRIVATE KEY", &bytes)).map_err(wrong)
        };
        match self {
            Self::Rsa(key) => key
                .to_pkcs1_der()
                .map(|bytes| pem::encode("RSA PRIVATE KEY", bytes.as_bytes()))
                .map_err(wrong),
            Self::P256(key) => ec(P256, &key.to_bytes(), key.public_key().to_encoded_point(false).as_bytes()),
            Self::P384(key) => ec(P384, &key.to_bytes(), key.public_key().to_encoded_point(false).as_bytes()),
            Self::P521(key) => ec(P521, &key.to_bytes(), key.public_key().to_encoded_point(false).as_bytes()),
            Self::Ed25519(key) => {
                let bytes =
                    ed25519_dalek::pkcs8::KeypairBytes { secret_key: key.to_bytes(), public_key: None };
                bytes.to_pkcs8_der().map(|bytes| pem::encode("PRIVATE KEY", bytes.as_bytes())).map_err(wrong)
            }
            Self::Dsa(bytes) => Ok(pem::encode("DSA PRIVATE KEY", bytes)),
        }
    }

    /// The public key as certificates hold it.
    pub fn public_info(&self) -> Result<SubjectPublicKeyInfoOwned, FuncError> {
        let der = match self {
            Self::Rsa(key) => key.to_public_key().to_public_key_der(),
            Self::P256(key) => key.public_key().to_public_key_der(),
            Self::P384(key) => key.public_key().to_public_key_der(),
            Self::P521(key) => key.public_key().to_public_key_der(),
            Self::Ed25519(key) => key.verifying_key().to_public_key_der(),
            Self::Dsa(_) => return Err(wrong("x509: unsupported public key type: *dsa.PublicKey")),
        };
        let der = der.map_err(wrong)?;
        SubjectPublicKeyInfoOwned::from_der(der.as_bytes()).map_err(wrong)
    }

    /// The signature algorithm this key signs certificates with.
    pub fn algorithm(&self) -> AlgorithmIdentifierOwned {
        let (oid, parameters) = match self {
            Self::Rsa(_) => (RSA_SHA256, Some(AnyRef::NULL.into())),
            Self::P256(_) => (ECDSA_SHA256, None),
            Self::P384(_) => (ECDSA_SHA384, None),
            Self::P521(_) => (ECDSA_SHA512, None),
            Self::Ed25519(_) | Self::Dsa(_) => (ED25519, None),
        };
        AlgorithmIdentifierOwned { oid, parameters }
    }

    /// Signs bytes. The same key and bytes always give the same signature.
    pub fn sign(&self, message: &[u8]) -> Result<BitString, FuncError> {
        let signature = match self {
            Self::Rsa(key) => pkcs1v15::SigningKey::<rsa::sha2::Sha256>::new((**key).clone())
                .try_sign(message)
                .map_err(wrong)?
                .to_vec(),
            Self::P256(key) => {
                let signature: p256::ecdsa::Signature =
                    p256::ecdsa::SigningKey::from(key).try_sign(message).map_err(wrong)?;
                signature.to_der().as_bytes().to_vec()
            }
            Self::P384(key) => {
                let signature: p384::ecdsa::Signature =
                    p384::ecdsa::SigningKey::from(key).try_sign(message).map_err(wrong)?;
                signature.to_der().as_bytes().to_vec()
            }
            Self::P521(key) => {
                let key = p521::ecdsa::SigningKey::from_bytes(&key.to_bytes()).map_err(wrong)?;
                let signature: p521::ecdsa::Signature = key.try_sign(message).map_err(wrong)?;
                signature.to_der().as_bytes().to_vec()
            }
            Self::Ed25519(key) => key.try_sign(message).map_err(wrong)?.to_bytes().to_vec(),
            Self::Dsa(_) => {
                return Err(wrong("x509: certificate private key does not implement crypto.Signer"));
            }
        };
        BitString::from_bytes(&signature).map_err(wrong)
    }
}

/// A DSA key of 2048 and 256 bits in its traditional form.
fn generate_dsa(stream: &mut Stream, meter: &Meter) -> Result<Vec<u8>, FuncError> {
    let [p, q, g] = prime::group(2048, 256, stream, meter)?;
    let components = dsa::Components::from_components(p, q, g).map_err(wrong)?;
    let key = dsa::SigningKey::generate(stream.rng(), components);
    let public = key.verifying_key();
    let bytes = |number: &BigUint| number.to_bytes_be();
    let parts = [
        bytes(public.components().p()),
        bytes(public.components().q()),
        bytes(public.components().g()),
        bytes(public.y()),
        bytes(key.x()),
    ];
    let [p, q, g, y, x] = &parts;
    let number = |bytes| UintRef::new(bytes).map_err(wrong);
    DsaKey { version: 0, p: number(p)?, q: number(q)?, g: number(g)?, y: number(y)?, x: number(x)? }
        .to_der()
        .map_err(wrong)
}
