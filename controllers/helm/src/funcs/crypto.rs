//! Passwords and ciphers: bcrypt, derived passwords, AES. Keys and certificates are in the files below.
mod certificate;
mod key;
mod pem;
mod prime;

use aes::Aes256;
use aes::cipher::block_padding::{NoPadding, Pkcs7};
use aes::cipher::{BlockDecryptMut as _, BlockEncryptMut as _, KeyIvInit as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use super::args::{Out, any, bytes, def, fail, lossy, text};
use super::{Ctx, FuncDef, FuncError, Param};
use crate::random::Stream;
use crate::value::Value;

use Param::{String as Str, Uint32};

pub(super) use certificate::FUNCS as CERTIFICATE_FUNCS;

pub(super) const FUNCS: &[FuncDef] = &[
    def("bcrypt", &[Str], |c, a| text(bcrypt_hash(c, bytes(a, 0))?)),
    def("htpasswd", &[Str, Str], |c, a| {
        let user = bytes(a, 0);
        if user.contains(&b':') {
            return text([b"invalid username: ".as_slice(), user].concat());
        }
        let hash = bcrypt_hash(c, bytes(a, 1))?;
        text([user, b":", hash.as_bytes()].concat())
    }),
    def("derivePassword", &[Uint32, Str, Str, Str, Str], derive_password),
    def("encryptAES", &[Str, Str], encrypt),
    def("decryptAES", &[Str, Str], decrypt),
    def("genPrivateKey", &[Str], |c, a| {
        c.shared.meter.check_time()?;
        let kind = lossy(a, 0);
        let made = key::PrivateKey::generate(&kind, &mut Stream::of_call(c)?, &c.shared.meter);
        text(match made {
            Ok(Some(key)) => key.to_pem()?,
            Ok(None) => format!("Unknown type {kind}"),
            Err(FuncError::Failed(error)) => format!("failed to generate private key: {error}"),
            Err(limit @ FuncError::Limit(_)) => return Err(limit),
        })
    }),
];

/// The work factor of the Go library.
const BCRYPT_COST: u32 = 10;

fn bcrypt_hash(ctx: &mut Ctx<'_>, password: &[u8]) -> Result<String, FuncError> {
    ctx.shared.meter.check_time()?;
    if password.len() > 72 {
        return Ok(
            "failed to encrypt string with bcrypt: bcrypt: password length exceeds 72 bytes".to_owned()
        );
    }
    let salt = Stream::of_call(ctx)?.bytes::<16>();
    match bcrypt::hash_with_salt(password, BCRYPT_COST, salt) {
        Ok(hash) => Ok(hash.format_for_version(bcrypt::Version::TwoA)),
        Err(error) => Ok(format!("failed to encrypt string with bcrypt: {error}")),
    }
}

const SCHEME: &[u8] = b"com.lyndir.masterpassword";

/// The shapes of derived passwords; each letter names a set of characters.
fn shapes(kind: &str) -> Option<&'static [&'static str]> {
    Some(match kind {
        "maximum" => &["anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"],
        "long" => &[
            "CvcvnoCvcvCvcv",
            "CvcvCvcvnoCvcv",
            "CvcvCvcvCvcvno",
            "CvccnoCvcvCvcv",
            "CvccCvcvnoCvcv",
            "CvccCvcvCvcvno",
            "CvcvnoCvccCvcv",
            "CvcvCvccnoCvcv",
            "CvcvCvccCvcvno",
            "CvcvnoCvcvCvcc",
            "CvcvCvcvnoCvcc",
            "CvcvCvcvCvccno",
            "CvccnoCvccCvcv",
            "CvccCvccnoCvcv",
            "CvccCvccCvcvno",
            "CvcvnoCvccCvcc",
            "CvcvCvccnoCvcc",
            "CvcvCvccCvccno",
            "CvccnoCvcvCvcc",
            "CvccCvcvnoCvcc",
            "CvccCvcvCvccno",
        ],
        "medium" => &["CvcnoCvc", "CvcCvcno"],
        "short" => &["Cvcn"],
        "basic" => &["aaanaaan", "aannaaan", "aaannaaa"],
        "pin" => &["nnnn"],
        _ => return None,
    })
}

fn set(letter: u8) -> &'static [u8] {
    match letter {
        b'V' => b"AEIOU",
        b'C' => b"BCDFGHJKLMNPQRSTVWXYZ",
        b'v' => b"aeiou",
        b'c' => b"bcdfghjklmnpqrstvwxyz",
        b'a' => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz",
        b'n' => b"0123456789",
        b'o' => b"@&%?,=[]_:-+*$#!'^~;()/.",
        _ => b"AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()",
    }
}

/// A name with its length in front, as the scheme hashes it.
fn counted(name: &[u8]) -> Vec<u8> {
    let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
    [SCHEME, &length.to_be_bytes(), name].concat()
}

/// The password of a site, derived from a master password.
fn derive_password(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let kind = lossy(args, 1);
    let Some(shapes) = shapes(&kind) else {
        return text(format!("cannot find password template {kind}"));
    };
    ctx.shared.meter.check_time()?;
    let (password, user, site) = (bytes(args, 2), bytes(args, 3), bytes(args, 4));
    // The memory scrypt works in, which is given back at once.
    crate::limits::fits(32 << 20);
    ctx.shared.meter.check_memory()?;
    let failed = |error: &dyn std::fmt::Display| text(format!("failed to derive password: {error}"));
    let mut key = [0; 64];
    let done = scrypt::Params::new(15, 8, 2).map_err(|error| error.to_string()).and_then(|params| {
        scrypt::scrypt(password, &counted(user), &params, &mut key).map_err(|error| error.to_string())
    });
    if let Err(error) = done {
        return failed(&error);
    }
    let counter = match any(args, 0) {
        Value::Int(int) => u32::try_from(int.as_i128()).unwrap_or(0),
        _ => 0,
    };
    let mut mac = match Hmac::<Sha256>::new_from_slice(&key) {
        Ok(mac) => mac,
        Err(error) => return failed(&error),
    };
    mac.update(&counted(site));
    mac.update(&counter.to_be_bytes());
    let seed = mac.finalize().into_bytes();
    let (first, rest) = seed.split_first().map_or((0, &[][..]), |(first, rest)| (*first, rest));
    let shape = shapes.get(usize::from(first) % shapes.len()).copied().unwrap_or("");
    let pick = |(letter, byte): (u8, &u8)| {
        let set = set(letter);
        set.get(usize::from(*byte) % set.len()).copied().unwrap_or(b'?')
    };
    text(shape.bytes().zip(rest).map(pick).collect::<Vec<u8>>())
}

/// A password cut or filled with zeros to the size of a key.
fn cipher_key(password: &[u8]) -> [u8; 32] {
    let mut key = [0; 32];
    for (slot, byte) in key.iter_mut().zip(password) {
        *slot = *byte;
    }
    key
}

fn encrypt(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    let plain = bytes(args, 1);
    if plain.is_empty() {
        return text("");
    }
    ctx.charge(plain.len().saturating_mul(3))?;
    let vector = Stream::of_call(ctx)?.bytes::<16>();
    let cipher = cbc::Encryptor::<Aes256>::new(&cipher_key(bytes(args, 0)).into(), &vector.into());
    let sealed = cipher.encrypt_padded_vec_mut::<Pkcs7>(plain);
    text(STANDARD.encode([vector.as_slice(), &sealed].concat()))
}

fn decrypt(ctx: &mut Ctx<'_>, args: &[Value]) -> Out {
    if bytes(args, 1).is_empty() {
        return text("");
    }
    ctx.charge(bytes(args, 1).len().saturating_mul(2))?;
    let sealed = super::base::decode64(bytes(args, 1)).map_err(FuncError::new)?;
    let Some((vector, sealed)) = sealed.split_at_checked(16) else {
        return fail("runtime error: slice bounds out of range");
    };
    let vector: [u8; 16] = vector.try_into().unwrap_or_default();
    let cipher = cbc::Decryptor::<Aes256>::new(&cipher_key(bytes(args, 0)).into(), &vector.into());
    let Ok(mut plain) = cipher.decrypt_padded_vec_mut::<NoPadding>(sealed) else {
        return fail("crypto/cipher: input not full blocks");
    };
    let padding = plain.last().map(|byte| usize::from(*byte));
    match padding.and_then(|padding| plain.len().checked_sub(padding)) {
        Some(length) => {
            plain.truncate(length);
            text(plain)
        }
        None => fail("runtime error: slice bounds out of range"),
    }
}
