//! Writes kubeconfigs with everything embedded, and makes clients of them.

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::certs::Pair;

/// How a client shows who it is.
pub(super) enum Credentials<'a> {
    Certificate(&'a Pair),
    Token(&'a str),
}

/// The kubeconfig as YAML. `plane` names its cluster and context.
pub(super) fn kubeconfig(plane: &str, port: u16, ca: &str, credentials: &Credentials) -> String {
    let ca = STANDARD.encode(ca);
    let user = match credentials {
        Credentials::Certificate(Pair { cert, key }) => format!(
            "    client-certificate-data: {}\n    client-key-data: {}",
            STANDARD.encode(cert),
            STANDARD.encode(key)
        ),
        Credentials::Token(token) => format!("    token: {token}"),
    };
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: {plane}
  cluster:
    server: https://127.0.0.1:{port}
    certificate-authority-data: {ca}
users:
- name: {plane}
  user:
{user}
contexts:
- name: {plane}
  context:
    cluster: {plane}
    user: {plane}
current-context: {plane}
"
    )
}

/// A client of its own connections. It belongs to the runtime it is made on: tests with runtimes of their own must not
/// share one.
pub(super) async fn client(kubeconfig: &str) -> Result<kube::Client> {
    let parsed = Kubeconfig::from_yaml(kubeconfig).context("a kubeconfig of our own cannot be read")?;
    let config = kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .context("a kubeconfig of our own is not complete")?;
    kube::Client::try_from(config).context("cannot make a client")
}
