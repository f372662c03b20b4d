//! Parses kubeconfigs of clusters, or says which field is wrong and what to do. Everything that would run a program,
//! read a file, go through a proxy or trust anybody is refused: whoever writes the Secret would otherwise decide what
//! the operator does on its own machine.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::people::Endpoint;
use http::HeaderValue;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::IgnoredAny;
use url::Url;

use super::wire::cut;

pub use endpoint::endpoint_of_secret;
pub use life::Life;
pub use tls::{certificate_life, pem_of, provider};
pub use token::{key_of, token_of, with_token};

mod argocd;
pub mod claims;
mod endpoint;
mod life;
mod tls;
mod token;

/// Largest kubeconfig.
const BYTES: usize = 256 << 10;
/// Keys of a Secret that are looked at when none is named.
const KEYS: [&str; 3] = ["value", "value.yaml", "kubeconfig"];

/// Why a kubeconfig is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct KubeconfigError {
    /// `KubeconfigInvalid`, `KubeconfigForbidden` or `SecretKeyNotFound`.
    pub reason: &'static str,
    /// A sentence that names the field and the cure; at most 256 bytes, no secrets.
    pub message: String,
}

fn invalid(message: &str) -> KubeconfigError {
    KubeconfigError { reason: "KubeconfigInvalid", message: cut(message, 256) }
}

fn forbidden(message: &str) -> KubeconfigError {
    KubeconfigError { reason: "KubeconfigForbidden", message: cut(message, 256) }
}

/// What is needed to reach one cluster. Its `Debug` shows the server alone.
#[derive(Clone)]
pub struct Credentials {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// Path below which the API is; empty, or such as `/k8s/clusters/c-1`.
    pub(crate) base: String,
    pub(crate) server_name: ServerName<'static>,
    pub(crate) tls: Arc<ClientConfig>,
    /// `Bearer ...`, marked sensitive.
    pub(crate) authorization: Option<HeaderValue>,
    life: Option<Life>,
}

impl Credentials {
    /// How long they hold, where they say so: client certificates and tokens of service accounts do.
    pub const fn life(&self) -> Option<Life> {
        self.life
    }

    /// `host:port`, as messages show it.
    pub fn server(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("server", &self.server()).finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    #[serde(default)]
    clusters: Option<Vec<NamedCluster>>,
    #[serde(default)]
    users: Option<Vec<NamedUser>>,
    #[serde(default)]
    contexts: Option<Vec<NamedContext>>,
    #[serde(default)]
    current_context: Option<String>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    #[serde(default)]
    cluster: Cluster,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct Cluster {
    server: Option<String>,
    certificate_authority_data: Option<String>,
    certificate_authority: Option<String>,
    insecure_skip_tls_verify: Option<bool>,
    tls_server_name: Option<String>,
    proxy_url: Option<String>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    #[serde(default)]
    user: User,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case", default)]
struct User {
    token: Option<SecretString>,
    #[serde(rename = "tokenFile", alias = "token-file")]
    token_file: Option<IgnoredAny>,
    client_certificate: Option<IgnoredAny>,
    client_certificate_data: Option<String>,
    client_key: Option<IgnoredAny>,
    client_key_data: Option<SecretString>,
    username: Option<IgnoredAny>,
    password: Option<SecretString>,
    auth_provider: Option<IgnoredAny>,
    exec: Option<IgnoredAny>,
    #[serde(rename = "as")]
    impersonate: Option<IgnoredAny>,
    as_uid: Option<IgnoredAny>,
    as_groups: Option<IgnoredAny>,
    as_user_extra: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    #[serde(default)]
    context: Context,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Context {
    cluster: String,
    user: String,
}

/// All that a Secret says of a cluster.
#[derive(Clone)]
pub struct SecretContent {
    /// The credentials that the cluster is reached with.
    pub credentials: Credentials,
    /// The way in which people reach it; `None` where that cannot be told.
    pub endpoint: Option<Endpoint>,
    /// The claims of the token of a kubeconfig, where it is a service account's and the only credential.
    pub bound: Option<claims::Bound>,
}

/// Reads what a Secret says of a cluster: a kubeconfig, or, where the Secret has the label of Argo CD's clusters and no key is
/// named, that form. It is parsed once.
pub fn content_of_secret<V: AsRef<[u8]>>(
    labels: Option<&BTreeMap<String, String>>,
    data: &BTreeMap<String, V>,
    key: Option<&str>,
) -> Result<SecretContent, KubeconfigError> {
    if key.is_none() && argocd::is_form(labels) {
        let (cluster, user) = argocd::parts(data)?;
        let credentials = assemble(&cluster, &user)?;
        return Ok(SecretContent { credentials, endpoint: endpoint::endpoint(&cluster).ok(), bound: None });
    }
    let file = parse(pick(data, key)?)?;
    let (cluster, user) = choose(&file)?;
    refuse(cluster, user)?;
    Ok(SecretContent {
        credentials: assemble(cluster, user)?,
        endpoint: endpoint::endpoint(cluster).ok(),
        bound: token::only(user).and_then(claims::bound),
    })
}

/// Finds the kubeconfig in a Secret's data: the named key, else `value`, `value.yaml` or `kubeconfig`.
pub fn pick<'a, V: AsRef<[u8]>>(
    data: &'a BTreeMap<String, V>,
    key: Option<&str>,
) -> Result<&'a [u8], KubeconfigError> {
    let found = match key {
        Some(key) => data.get(key),
        None => KEYS.iter().find_map(|key| data.get(*key)),
    };
    found.map(AsRef::as_ref).ok_or_else(|| {
        let wanted = key.map_or_else(|| "none of the keys value, value.yaml, kubeconfig".to_owned(), |key| format!("no key {key}"));
        KubeconfigError {
            reason: "SecretKeyNotFound",
            message: cut(&format!("the Secret has {wanted}: put the kubeconfig there, or name its key in kubeconfigSecretRef.key"), 256),
        }
    })
}

/// Reads a kubeconfig.
pub fn read(bytes: &[u8]) -> Result<Credentials, KubeconfigError> {
    let file = parse(bytes)?;
    let (cluster, user) = choose(&file)?;
    refuse(cluster, user)?;
    assemble(cluster, user)
}

fn parse(bytes: &[u8]) -> Result<File, KubeconfigError> {
    if bytes.len() > BYTES {
        return Err(invalid(&format!(
            "the kubeconfig is larger than {BYTES} bytes: keep only the one cluster in it"
        )));
    }
    // The parser's message may quote the file, which holds secrets; the position says enough.
    serde_yaml::from_slice(bytes).map_err(|error| {
        let at = error.location().map_or_else(String::new, |at| format!(" at line {}", at.line()));
        invalid(&format!("the kubeconfig does not parse as YAML of kind Config{at}"))
    })
}

fn assemble(cluster: &Cluster, user: &User) -> Result<Credentials, KubeconfigError> {
    let (host, port, base) = server(cluster)?;
    let name = cluster.tls_server_name.as_deref().filter(|name| !name.is_empty()).unwrap_or(&host);
    let server_name = ServerName::try_from(name.to_owned())
        .map_err(|_| invalid(&format!("tls-server-name {name:?} is neither a DNS name nor an IP address")))?;
    let authority = cluster.certificate_authority_data.as_deref().filter(|data| !data.is_empty()).ok_or_else(|| {
        invalid("the kubeconfig embeds no certificate authority (certificate-authority-data): make it with kubectl config view --raw --flatten --minify")
    })?;
    let authority = decode("certificate-authority-data", authority)?;
    let client = client(user)?;
    let certificate = client.as_ref().and_then(|client| certificate_life(&client.certificates));
    let bound = user.token.as_ref().and_then(|token| claims::life(token.expose_secret().trim()));
    let life = Life::first(certificate, bound);
    let tls = tls::config(&authority, client.as_ref())?;
    Ok(Credentials { host, port, base, server_name, tls, authorization: token(user)?, life })
}

fn choose(file: &File) -> Result<(&Cluster, &User), KubeconfigError> {
    let contexts = file.contexts.as_deref().unwrap_or_default();
    let context = match file.current_context.as_deref().filter(|name| !name.is_empty()) {
        Some(name) => contexts
            .iter()
            .find(|context| context.name == name)
            .ok_or_else(|| invalid(&format!("current-context {name:?} is not among the contexts")))?,
        None => match contexts {
            [only] => only,
            [] => {
                return Err(invalid(
                    "the kubeconfig has no contexts: set one, and current-context to its name",
                ));
            }
            _ => return Err(invalid("the kubeconfig has several contexts and no current-context: set it")),
        },
    };
    let Context { cluster, user } = &context.context;
    let found_cluster = file.clusters.iter().flatten().find(|named| named.name == *cluster);
    let found_user = file.users.iter().flatten().find(|named| named.name == *user);
    match (found_cluster, found_user) {
        (Some(cluster), Some(user)) => Ok((&cluster.cluster, &user.user)),
        (None, _) => {
            Err(invalid(&format!("context {:?} names cluster {cluster:?}, which is not there", context.name)))
        }
        (_, None) => {
            Err(invalid(&format!("context {:?} names user {user:?}, which is not there", context.name)))
        }
    }
}

fn refuse(cluster: &Cluster, user: &User) -> Result<(), KubeconfigError> {
    const EMBED: &str = "embed the contents (kubectl config view --raw --flatten)";
    const TOKEN: &str = "use a ServiceAccount token or a client certificate";
    let set = |field: &Option<String>| field.as_deref().is_some_and(|text| !text.is_empty());
    let fields = [
        (user.exec.is_some(), "exec", "runs a program", TOKEN),
        (user.auth_provider.is_some(), "auth-provider", "runs code of a provider", TOKEN),
        (user.token_file.is_some(), "tokenFile", "reads a file of the operator's machine", EMBED),
        (
            user.client_certificate.is_some(),
            "client-certificate",
            "reads a file of the operator's machine",
            EMBED,
        ),
        (user.client_key.is_some(), "client-key", "reads a file of the operator's machine", EMBED),
        (
            user.username.is_some() || user.password.is_some(),
            "username/password",
            "is not accepted by API servers",
            TOKEN,
        ),
        (
            user.impersonate.is_some()
                || user.as_uid.is_some()
                || user.as_groups.is_some()
                || user.as_user_extra.is_some(),
            "as",
            "acts as somebody else",
            "register the credential that is meant",
        ),
        (
            set(&cluster.certificate_authority),
            "certificate-authority",
            "reads a file of the operator's machine",
            EMBED,
        ),
        (
            cluster.insecure_skip_tls_verify == Some(true),
            "insecure-skip-tls-verify",
            "trusts whoever answers",
            "embed the CA in certificate-authority-data",
        ),
        (
            set(&cluster.proxy_url),
            "proxy-url",
            "sends requests through another machine",
            "make the API server reachable directly",
        ),
    ];
    match fields.iter().find(|(present, ..)| *present) {
        Some((_, field, does, cure)) => {
            Err(forbidden(&format!("the kubeconfig's field {field} {does}, which is not allowed: {cure}")))
        }
        None => Ok(()),
    }
}

fn server(cluster: &Cluster) -> Result<(String, u16, String), KubeconfigError> {
    let text = cluster.server.as_deref().unwrap_or_default();
    // Neither is quoted whole: it may carry a password.
    let url =
        Url::parse(text).map_err(|_| invalid("server is not a URL such as https://edge.example.com:6443"))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(forbidden("server carries a user name or password: use a token or a client certificate"));
    }
    if url.scheme() != "https" {
        return Err(forbidden(&format!(
            "server {:?} on host {:?} is not https: credentials would cross the network in clear",
            cut(url.scheme(), 20),
            cut(url.host_str().unwrap_or_default(), 100)
        )));
    }
    let host =
        url.host_str().filter(|host| !host.is_empty()).ok_or_else(|| invalid("server names no host"))?;
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    Ok((host, url.port_or_known_default().unwrap_or(443), url.path().trim_end_matches('/').to_owned()))
}

fn client(user: &User) -> Result<Option<tls::Client>, KubeconfigError> {
    let certificate = user.client_certificate_data.as_deref().filter(|data| !data.is_empty());
    let key = user.client_key_data.as_ref().filter(|data| !data.expose_secret().is_empty());
    match (certificate, key) {
        (Some(certificate), Some(key)) => {
            let certificate = decode("client-certificate-data", certificate)?;
            let key = zeroize::Zeroizing::new(decode("client-key-data", key.expose_secret())?);
            tls::Client::read(&certificate, &key).map(Some)
        }
        (Some(_), None) => Err(invalid("client-certificate-data is there, but client-key-data is not")),
        (None, Some(_)) => Err(invalid("client-key-data is there, but client-certificate-data is not")),
        (None, None) if user.token.as_ref().is_none_or(|token| token.expose_secret().trim().is_empty()) => {
            Err(invalid("the kubeconfig's user has neither token nor client-certificate-data"))
        }
        (None, None) => Ok(None),
    }
}

fn token(user: &User) -> Result<Option<HeaderValue>, KubeconfigError> {
    let Some(token) =
        user.token.as_ref().map(|token| token.expose_secret().trim()).filter(|token| !token.is_empty())
    else {
        return Ok(None);
    };
    let text = zeroize::Zeroizing::new(format!("Bearer {token}"));
    let mut value = HeaderValue::from_str(&text)
        .map_err(|_| invalid("the user's token has characters that no token has"))?;
    value.set_sensitive(true);
    Ok(Some(value))
}

fn decode(field: &str, text: &str) -> Result<Vec<u8>, KubeconfigError> {
    let compact = zeroize::Zeroizing::new(text.split_ascii_whitespace().collect::<String>());
    STANDARD.decode(compact.as_bytes()).map_err(|_| invalid(&format!("{field} is not base64")))
}

#[cfg(test)]
mod tests;
