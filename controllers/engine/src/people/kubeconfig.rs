//! Writes kubeconfigs of people, and reads back what they say of a credential.
//!
//! Whose a credential is, and since when it holds, stands in it as an extension, which kubectl carries along: a certificate does not say when
//! it was issued, for signers set its begin back.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{Kind, Person};
use crate::canonical;
use crate::identity::ClusterId;

/// Key of the kubeconfig of all clusters in its Secret.
pub const MERGED_KEY: &str = "kubeconfig";
/// Name of the extension.
const EXTENSION: &str = "emco.io/credential";

/// How a cluster is reached by people, as it was registered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// `https://...`
    pub server: String,
    /// Certificates of its authority, PEM in Base64.
    pub authority: String,
    /// The name its certificate has to have, where that is not the server's.
    pub tls_server_name: Option<String>,
}

impl Endpoint {
    /// Tells endpoints apart.
    pub fn digest(&self) -> String {
        let Self { server, authority, tls_server_name } = self;
        canonical::sha256_hex("emco-endpoint/1\0", &json!([server, authority, tls_server_name]))
    }
}

/// What a cluster issued. It has no `Debug`, and is never part of a message.
pub enum Proof<'a> {
    /// A certificate and its key, each PEM in Base64.
    Certificate {
        /// The chain.
        certificate: &'a str,
        /// The key.
        key: &'a str,
    },
    /// A token.
    Token(&'a str),
}

/// What is known of a stored credential. No part of it is secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Its kind.
    pub kind: Kind,
    /// Whose it is.
    pub user: String,
    /// Groups that it names.
    pub groups: Vec<String>,
    /// Namespace of its context.
    pub namespace: String,
    /// Digest of how the cluster is reached.
    pub endpoint: String,
    /// Since when it is here.
    pub issued: Timestamp,
    /// When it ends.
    pub expires: Timestamp,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    api_version: String,
    kind: String,
    clusters: Vec<NamedCluster>,
    users: Vec<NamedUser>,
    contexts: Vec<NamedContext>,
    #[serde(rename = "current-context", default, skip_serializing_if = "String::is_empty")]
    current_context: String,
}

#[derive(Serialize, Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tls_server_name: Option<String>,
    certificate_authority_data: String,
}

#[derive(Serialize, Deserialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
struct User {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_certificate_data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_key_data: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<String>,
    extensions: Vec<NamedExtension>,
}

#[derive(Serialize, Deserialize)]
struct NamedExtension {
    name: String,
    extension: Extension,
}

#[derive(Serialize, Deserialize)]
struct Extension {
    user: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    groups: Vec<String>,
    issued: Timestamp,
    expires: Timestamp,
}

#[derive(Serialize, Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Serialize, Deserialize)]
struct Context {
    cluster: String,
    user: String,
    namespace: String,
}

/// Key of a cluster in a Secret, and its name in a kubeconfig. Neither part can hold a dot.
pub fn key_of(cluster: &ClusterId) -> String {
    format!("{}.{}", cluster.provider(), cluster.cluster())
}

/// Reads such a key.
pub fn cluster_of(key: &str) -> Option<ClusterId> {
    let (provider, cluster) = key.split_once('.')?;
    (!cluster.contains('.')).then(|| ClusterId::parse(&format!("{provider}/{cluster}"))).flatten()
}

/// The kubeconfig of a person for one cluster, as YAML; `None` where it cannot be written.
pub fn write(
    cluster: &ClusterId,
    endpoint: &Endpoint,
    person: &Person,
    proof: &Proof<'_>,
    (issued, expires): (Timestamp, Timestamp),
) -> Option<String> {
    let name = key_of(cluster);
    let user_name = format!("{}@{name}", person.user);
    let some = |text: &str| Some(text.to_owned());
    let (certificate, key, token) = match proof {
        Proof::Certificate { certificate, key } => (some(certificate), some(key), None),
        Proof::Token(token) => (None, None, some(token)),
    };
    // A token names no groups.
    let groups = if token.is_none() { person.groups.clone() } else { Vec::new() };
    let extension = Extension { user: person.user.clone(), groups, issued, expires };
    let config = Config {
        api_version: "v1".to_owned(),
        kind: "Config".to_owned(),
        clusters: vec![NamedCluster {
            name: name.clone(),
            cluster: Cluster {
                server: endpoint.server.clone(),
                tls_server_name: endpoint.tls_server_name.clone(),
                certificate_authority_data: endpoint.authority.clone(),
            },
        }],
        users: vec![NamedUser {
            name: user_name.clone(),
            user: User {
                client_certificate_data: certificate,
                client_key_data: key,
                token,
                extensions: vec![NamedExtension { name: EXTENSION.to_owned(), extension }],
            },
        }],
        contexts: vec![NamedContext {
            name: name.clone(),
            context: Context { cluster: name.clone(), user: user_name, namespace: person.namespace.clone() },
        }],
        current_context: name,
    };
    serde_yaml::to_string(&config).ok()
}

fn parse(text: &str) -> Option<Config> {
    // What the parser says would quote the text, which holds a secret.
    serde_yaml::from_str(text).ok()
}

/// What a kubeconfig that [`write`] wrote says of its credential; `None` of any other text.
pub fn read(text: &str) -> Option<Stored> {
    let config = parse(text)?;
    let cluster = &config.clusters.first()?.cluster;
    let user = &config.users.first()?.user;
    let said = &user.extensions.iter().find(|one| one.name == EXTENSION)?.extension;
    let endpoint = Endpoint {
        server: cluster.server.clone(),
        authority: cluster.certificate_authority_data.clone(),
        tls_server_name: cluster.tls_server_name.clone(),
    };
    Some(Stored {
        kind: if user.token.is_some() { Kind::Token } else { Kind::Certificate },
        user: said.user.clone(),
        groups: said.groups.clone(),
        namespace: config.contexts.first()?.context.namespace.clone(),
        endpoint: endpoint.digest(),
        issued: said.issued,
        expires: said.expires,
    })
}

/// One kubeconfig with the contexts of all. Of several none is the current one: whoever types a command says where.
pub fn merged<'a>(all: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let mut whole: Option<Config> = None;
    for config in all.into_iter().filter_map(parse) {
        match &mut whole {
            None => whole = Some(config),
            Some(whole) => {
                whole.clusters.extend(config.clusters);
                whole.users.extend(config.users);
                whole.contexts.extend(config.contexts);
                whole.current_context.clear();
            }
        }
    }
    serde_yaml::to_string(&whole?).ok()
}
