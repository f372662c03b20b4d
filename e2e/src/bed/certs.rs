//! Issues certificates of a plane's own authority, X.509 v3 in PEM.

use std::path::Path;

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// Names under which a plane's own programs, Pods and tests reach its API server.
const SERVER_NAMES: [&str; 7] = [
    "127.0.0.1",
    "10.0.0.1",
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// A certificate with its key, in PEM.
pub(crate) struct Pair {
    pub cert: String,
    pub key: String,
}

impl Pair {
    pub fn write(&self, cert: &Path, key: &Path) -> Result<()> {
        for (path, text) in [(cert, &self.cert), (key, &self.key)] {
            std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(())
    }
}

/// The one authority of a plane: for its server, its clients and the certificates it signs.
pub(crate) struct Authority {
    pub ca: Pair,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    pub fn new(plane: &str) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, format!("emco test bed {plane}"));
        params.key_usages =
            vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().context("cannot make a key")?;
        let cert = params.self_signed(&key).context("cannot make an authority")?;
        let ca = Pair { cert: cert.pem(), key: key.serialize_pem() };
        Ok(Self { ca, issuer: Issuer::new(params, key) })
    }

    /// For an API server on this machine.
    pub fn server(&self) -> Result<Pair> {
        self.server_for(&[])
    }

    /// As [`Authority::server`], for these names or addresses, too.
    pub fn server_for(&self, more: &[&str]) -> Result<Pair> {
        let names: Vec<String> = SERVER_NAMES.iter().chain(more).map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).context("a server name is not a name")?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        self.leaf(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// For a server on loopback, until so long after 1970.
    pub fn server_until(&self, end: std::time::Duration) -> Result<Pair> {
        let mut params =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).context("a server name is not a name")?;
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + end;
        self.leaf(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// For a client that the API server calls `user`, in `group` if one is given.
    pub fn client(&self, user: &str, group: Option<&str>) -> Result<Pair> {
        self.leaf(named(user, group), ExtendedKeyUsagePurpose::ClientAuth)
    }

    /// As [`Authority::client`], valid until this time after 1970.
    pub fn client_until(&self, user: &str, group: Option<&str>, end: std::time::Duration) -> Result<Pair> {
        let mut params = named(user, group);
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + end;
        self.leaf(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn leaf(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Result<Pair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate().context("cannot make a key")?;
        let cert = params.signed_by(&key, &self.issuer).context("cannot sign a certificate")?;
        Ok(Pair { cert: cert.pem(), key: key.serialize_pem() })
    }
}

/// Whom a certificate names.
fn named(user: &str, group: Option<&str>) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, user);
    if let Some(group) = group {
        params.distinguished_name.push(DnType::OrganizationName, group);
    }
    params
}
