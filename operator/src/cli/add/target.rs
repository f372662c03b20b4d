//! The kubeconfig of a cluster that is to be added comes in; its API server's address and authority, and a client, go out. And a
//! kubeconfig with nothing but address, authority and a token, checked as the operator will check it.

use anyhow::{Context as _, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_controllers::remote::kubeconfig as rules;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{ListParams, PostParams};
use kube::config::{Cluster, KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, ResourceExt as _};
use serde_json::json;

use super::granted::{Refused, until_granted};
use crate::cli::args::AddArgs;
use crate::cli::hub::{self, chain, client_of};

/// A cluster that is to be added.
pub struct Target {
    /// As the person who adds it.
    pub client: Client,
    /// Address for the hub.
    pub server: String,
    /// The authority in PEM, base64.
    authority: String,
    server_name: Option<String>,
}

/// A right that the new account is asked about.
pub struct Right {
    /// API group; `*` for all.
    pub group: &'static str,
    /// Resource; `*` for all.
    pub resource: &'static str,
    /// Verb; `*` for all.
    pub verb: &'static str,
}

/// Reads the kubeconfig and connects.
pub async fn read(args: &AddArgs) -> anyhow::Result<Target> {
    let kubeconfig = hub::kubeconfig(args.kubeconfig.as_deref()).context("the cluster to add")?;
    let cluster = cluster(&kubeconfig, args.context.as_deref())?;
    refuse(&cluster)?;
    let server = match &args.server {
        Some(server) => server.clone(),
        None => cluster.server.clone().context("the kubeconfig of the cluster to add names no server")?,
    };
    let authority = authority(&cluster, args)?;
    let options = KubeConfigOptions { context: args.context.clone(), ..Default::default() };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| anyhow!("the kubeconfig of the cluster to add cannot be used: {}", chain(&error)))?;
    let client = hub::client(config)?;
    let target = Target { client, server, authority, server_name: cluster.tls_server_name };
    // With the operator's own words for what it would refuse, before anything is made.
    rules::read(target.kubeconfig("a-token").as_bytes())?;
    Ok(target)
}

/// A registered cluster, from the kubeconfig that the hub has for it: address and authority stay, `client` is who asks.
pub fn stored(client: Client, kubeconfig: &str) -> anyhow::Result<Target> {
    // What a parser says may quote the file, in which there is a token.
    let parsed =
        Kubeconfig::from_yaml(kubeconfig).map_err(|_| anyhow!("the stored kubeconfig does not parse"))?;
    let cluster = cluster(&parsed, None)?;
    let server = cluster.server.context("the stored kubeconfig names no server")?;
    let authority = cluster.certificate_authority_data.context("the stored kubeconfig has no authority")?;
    Ok(Target { client, server, authority, server_name: cluster.tls_server_name })
}

/// A client of the cluster of a person's own kubeconfig.
pub async fn person(file: Option<&std::path::Path>, context: Option<&str>) -> anyhow::Result<Client> {
    let kubeconfig = hub::kubeconfig(file).context("the cluster")?;
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| anyhow!("the kubeconfig of the cluster cannot be used: {}", chain(&error)))?;
    hub::client(config)
}

/// A cluster that is asked, and gets nothing.
pub fn asked(client: Client, name: &str) -> Target {
    Target { client, server: name.to_owned(), authority: String::new(), server_name: None }
}

fn cluster(kubeconfig: &Kubeconfig, context: Option<&str>) -> anyhow::Result<Cluster> {
    let wanted = context
        .or(kubeconfig.current_context.as_deref())
        .context("the kubeconfig of the cluster to add has no current context: name one with --context")?;
    let found = kubeconfig
        .contexts
        .iter()
        .find(|named| named.name == wanted)
        .and_then(|named| named.context.as_ref());
    let names: Vec<&str> = kubeconfig.contexts.iter().map(|named| named.name.as_str()).collect();
    let found =
        found.with_context(|| format!("there is no context {wanted}: there are {}", names.join(", ")))?;
    let cluster = kubeconfig
        .clusters
        .iter()
        .find(|named| named.name == found.cluster)
        .and_then(|named| named.cluster.clone());
    cluster
        .with_context(|| format!("context {wanted} names the cluster {}, which is not there", found.cluster))
}

fn refuse(cluster: &Cluster) -> anyhow::Result<()> {
    if cluster.insecure_skip_tls_verify == Some(true) {
        bail!(
            "the kubeconfig of the cluster to add does not verify the API server (insecure-skip-tls-verify): whoever answers would \
             get a token that may do everything; put the authority into certificate-authority-data"
        );
    }
    if cluster.proxy_url.as_deref().is_some_and(|url| !url.is_empty()) {
        bail!(
            "the kubeconfig of the cluster to add goes through a proxy (proxy-url), which the operator would not: name an address \
             that the hub reaches in the kubeconfig, or give the operator its --proxy"
        );
    }
    Ok(())
}

fn authority(cluster: &Cluster, args: &AddArgs) -> anyhow::Result<String> {
    let read = |file: &std::path::Path| {
        std::fs::read(file)
            .map(|pem| STANDARD.encode(pem))
            .with_context(|| format!("the authority {} cannot be read", file.display()))
    };
    if let Some(file) = &args.certificate_authority {
        return read(file);
    }
    let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    if let Some(data) = some(&cluster.certificate_authority_data) {
        return Ok(data);
    }
    if let Some(file) = some(&cluster.certificate_authority) {
        return read(std::path::Path::new(&file));
    }
    bail!(
        "the kubeconfig of the cluster to add has no authority (certificate-authority-data), and the operator trusts only what it is \
         told: give the PEM file of the API server's authority with --certificate-authority"
    )
}

impl Target {
    /// The cluster's identity.
    pub async fn uid(&self) -> anyhow::Result<String> {
        let system = Api::<Namespace>::all(self.client.clone())
            .get("kube-system")
            .await
            .map_err(|e| self.failed(&e))?;
        system.uid().context("the cluster's kube-system has no UID")
    }

    /// A kubeconfig with nothing but this.
    pub fn kubeconfig(&self, token: &str) -> String {
        let mut cluster = json!({"server": self.server, "certificate-authority-data": self.authority});
        if let (Some(name), Some(fields)) = (&self.server_name, cluster.as_object_mut()) {
            fields.insert("tls-server-name".to_owned(), json!(name));
        }
        let file = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "emco",
            "clusters": [{"name": "emco", "cluster": cluster}],
            "users": [{"name": "emco", "user": {"token": token}}],
            "contexts": [{"name": "emco", "context": {"cluster": "emco", "user": "emco"}}],
        });
        serde_yaml::to_string(&file).unwrap_or_default()
    }

    /// Connects with a kubeconfig as the operator will, and asks what the operator will ask; also whether the account may do this.
    pub async fn check(&self, kubeconfig: &str, uid: &str, right: Option<&Right>) -> anyhow::Result<()> {
        rules::read(kubeconfig.as_bytes())?;
        let client = client_of(kubeconfig).await?;
        until_granted(|| self.ask(&client, uid, right)).await
    }

    async fn ask(&self, client: &Client, uid: &str, right: Option<&Right>) -> Result<(), Refused> {
        let failed = |error: &kube::Error| match error {
            kube::Error::Api(status) => {
                let refused =
                    anyhow!("the new service account is refused by the cluster: {}", status.message);
                if status.code == 403 { Refused::Forbidden(refused) } else { Refused::Otherwise(refused) }
            }
            other => Refused::Otherwise(anyhow!(
                "{} cannot be reached with what the hub would get: {}",
                self.server,
                chain(other)
            )),
        };
        let params = ListParams::default().fields("metadata.name=kube-system").limit(1);
        let found =
            Api::<Namespace>::all(client.clone()).list(&params).await.map_err(|error| failed(&error))?;
        let now = found.items.first().and_then(kube::ResourceExt::uid).unwrap_or_default();
        if now != uid {
            return Err(Refused::Otherwise(anyhow!(
                "{} is another cluster than the one of the kubeconfig: its kube-system has UID {now}, not {uid}",
                self.server
            )));
        }
        let Some(Right { group, resource, verb }) = right else { return Ok(()) };
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: Some((*group).to_owned()),
                    resource: Some((*resource).to_owned()),
                    verb: Some((*verb).to_owned()),
                    ..Default::default()
                }),
                ..Default::default()
            },
            ..Default::default()
        };
        let answer = Api::<SelfSubjectAccessReview>::all(client.clone())
            .create(&PostParams::default(), &review)
            .await
            .map_err(|error| failed(&error))?;
        if !answer.status.is_some_and(|status| status.allowed) {
            let what = if *verb == "*" { "do everything".to_owned() } else { format!("{verb} {resource}") };
            return Err(Refused::Forbidden(anyhow!(
                "the new service account may not {what}, although its role says so: an authorizer of the cluster forbids it"
            )));
        }
        Ok(())
    }

    /// What the cluster said, as a sentence.
    pub fn failed(&self, error: &kube::Error) -> anyhow::Error {
        match error {
            kube::Error::Api(status) if status.code == 403 => {
                anyhow!("you may not do that on the cluster {}: {}", self.server, status.message)
            }
            kube::Error::Api(status) if status.code == 401 => {
                anyhow!("the cluster {} does not accept your credentials: {}", self.server, status.message)
            }
            kube::Error::Api(status) => anyhow!("the cluster {} refuses: {}", self.server, status.message),
            other => anyhow!("the cluster {} cannot be reached: {}", self.server, chain(other)),
        }
    }
}
