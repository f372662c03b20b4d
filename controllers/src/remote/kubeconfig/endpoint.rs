//! Reads how people reach a cluster from what it is registered with: what of that is no secret.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_engine::people::Endpoint;

use super::{Cluster, KubeconfigError, argocd, choose, decode, parse, pick, server, tls};

/// From a Secret as [`super::content_of_secret`] takes it.
pub fn endpoint_of_secret<V: AsRef<[u8]>>(
    labels: Option<&BTreeMap<String, String>>,
    data: &BTreeMap<String, V>,
    key: Option<&str>,
) -> Result<Endpoint, KubeconfigError> {
    if key.is_none() && argocd::is_form(labels) {
        return endpoint(&argocd::cluster(data)?);
    }
    let file = parse(pick(data, key)?)?;
    endpoint(choose(&file)?.0)
}

/// In the words of a kubeconfig, whatever the form was.
pub(super) fn endpoint(cluster: &Cluster) -> Result<Endpoint, KubeconfigError> {
    let (host, port, base) = server(cluster)?;
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let authority = decode(
        "certificate-authority-data",
        cluster.certificate_authority_data.as_deref().unwrap_or_default(),
    )?;
    Ok(Endpoint {
        server: format!("https://{host}:{port}{base}"),
        // Certificates alone: what else stood in the file stays on the hub.
        authority: STANDARD
            .encode(tls::pem_of(&tls::certificates("certificate-authority-data", &authority)?)),
        tls_server_name: cluster.tls_server_name.clone().filter(|name| !name.is_empty()),
    })
}
