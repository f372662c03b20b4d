//! Connects to the hub, and turns its errors into sentences.

use std::fmt::Debug;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use emco_crds::{DeploymentIntentGroup, OwnerKind, Project, SyncShard};
use emco_engine::identity::ClusterId;
use kube::api::ListParams;
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::args::{Deployment, HubArgs};

/// Objects of one page of a list.
const PAGE: u32 = 500;

/// The hub, as the user of the kubeconfig.
pub struct Hub {
    /// Its client.
    pub client: Client,
    /// The namespace of the context.
    pub namespace: String,
    /// Where the operator is.
    pub operator_namespace: String,
    /// Address of the API server.
    pub url: String,
    /// In the operator, who lends clients of clusters: there, no kubeconfig is read.
    pub lender: Option<Arc<dyn Lender>>,
}

/// Lends clients of clusters that somebody else is connected to.
pub trait Lender: Send + Sync {
    /// A client of a cluster, if it is the one with this identity.
    fn client(&self, id: &ClusterId, uid: Option<&str>) -> anyhow::Result<Client>;
}

/// Connects as kubectl would.
pub async fn connect(args: &HubArgs) -> anyhow::Result<Hub> {
    let mut config = config(args.kubeconfig.as_deref(), args.context.as_deref())
        .await
        .context("there is no hub to connect to")?;
    if let Some(user) = &args.as_user {
        config.auth_info.impersonate = Some(user.clone());
        config.auth_info.impersonate_groups = (!args.as_group.is_empty()).then(|| args.as_group.clone());
    }
    let namespace = config.default_namespace.clone();
    let url = config.cluster_url.to_string();
    let client = client(config)?;
    Ok(Hub { client, namespace, operator_namespace: args.operator_namespace.clone(), url, lender: None })
}

/// A client without retries of its own: people wait.
pub fn client(mut config: kube::Config) -> anyhow::Result<Client> {
    config.default_retry = false;
    config.connect_timeout = Some(std::time::Duration::from_secs(10));
    config.read_timeout = None;
    Client::try_from(config).map_err(|error| anyhow!("the kubeconfig cannot be used: {}", chain(&error)))
}

/// A client of a kubeconfig that was found to be harmless.
pub async fn client_of(text: &str) -> anyhow::Result<Client> {
    client(config_of(text).await?)
}

/// The same, acting as a service account of the cluster.
pub async fn client_as(text: &str, account: &str) -> anyhow::Result<Client> {
    let mut config = config_of(text).await?;
    config.auth_info.impersonate = Some(account.to_owned());
    client(config)
}

async fn config_of(text: &str) -> anyhow::Result<kube::Config> {
    // What a parser says may quote the file, in which there is a token.
    let parsed = Kubeconfig::from_yaml(text).map_err(|_| anyhow!("the kubeconfig does not parse"))?;
    kube::Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
        .await
        .map_err(|error| anyhow!("the kubeconfig is not complete: {}", chain(&error)))
}

/// The kubeconfig of a file, else of KUBECONFIG or the home folder.
pub fn kubeconfig(file: Option<&std::path::Path>) -> anyhow::Result<Kubeconfig> {
    let named = |file: &std::path::Path| file.display().to_string();
    match file {
        Some(file) => {
            Kubeconfig::read_from(file).map_err(|error| anyhow!("{}: {}", named(file), unread(&error)))
        }
        None => Kubeconfig::read().map_err(|error| {
            anyhow!("set KUBECONFIG to a kubeconfig file, or name one with a flag: {}", unread(&error))
        }),
    }
}

/// Why a kubeconfig cannot be read. What a parser says may quote the file, in which there is a token.
fn unread(error: &KubeconfigError) -> String {
    match error {
        KubeconfigError::Parse(error) => {
            let line = error.location().map(|place| format!(", see line {}", place.line()));
            format!("it does not parse as a kubeconfig{}", line.unwrap_or_default())
        }
        other => chain(other),
    }
}

async fn config(file: Option<&std::path::Path>, context: Option<&str>) -> anyhow::Result<kube::Config> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
    let kubeconfig = kubeconfig(file)?;
    kube::Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|error| anyhow!("the kubeconfig cannot be used: {}", chain(&error)))
}

impl Hub {
    /// The namespace that is meant.
    pub fn namespace_or(&self, named: Option<&str>) -> String {
        named.map_or_else(|| self.namespace.clone(), str::to_owned)
    }

    /// The namespace and name of a deployment intent group, with the namespace of its project where a project is named.
    pub async fn locate(
        &self,
        deployment: &Deployment,
        namespace: Option<&str>,
    ) -> anyhow::Result<(String, String)> {
        let name = deployment.name.clone();
        let Some(project) = &deployment.project else {
            return Ok((self.namespace_or(namespace), name));
        };
        if let Some(namespace) = namespace
            && namespace != project
        {
            bail!("{project}/{name} and --namespace {namespace} exclude each other: leave one of them out");
        }
        match Api::<Project>::all(self.client.clone()).get_opt(project).await {
            Ok(Some(found)) => Ok((found.spec.namespace.unwrap_or_else(|| project.clone()), name)),
            Ok(None) => bail!("there is no project {project} on the hub {}", self.url),
            // Tenants cannot read projects; by default the namespace has the project's name.
            Err(error) if is_forbidden(&error) => Ok((project.clone(), name)),
            Err(error) => Err(self.sentence(&error, "read project", project)),
        }
    }

    /// One deployment intent group.
    pub async fn deployment(&self, namespace: &str, name: &str) -> anyhow::Result<DeploymentIntentGroup> {
        let api = Api::<DeploymentIntentGroup>::namespaced(self.client.clone(), namespace);
        match api.get_opt(name).await {
            Ok(Some(found)) => Ok(found),
            Ok(None) => {
                // An unknown kind is 404 as well.
                self.list(api, &ListParams::default().limit(1), "deployment intent groups", Some(namespace))
                    .await?;
                bail!(
                    "there is no deployment intent group {name} in namespace {namespace} of the hub {}",
                    self.url
                )
            }
            Err(error) => {
                Err(self.sentence(&error, "read deployment intent group", &format!("{namespace}/{name}")))
            }
        }
    }

    /// The shards of a deployment intent group.
    pub async fn shards(&self, namespace: &str, name: &str) -> anyhow::Result<Vec<SyncShard>> {
        let api = Api::<SyncShard>::namespaced(self.client.clone(), namespace);
        let shards = self
            .list(api, &ListParams::default().labels(&shards_of(name)), "shards", Some(namespace))
            .await?;
        Ok(shards.into_iter().filter(|shard| is_of(shard, name)).collect())
    }

    /// All objects of a list, page by page.
    pub async fn list<K>(
        &self,
        api: Api<K>,
        params: &ListParams,
        what: &str,
        namespace: Option<&str>,
    ) -> anyhow::Result<Vec<K>>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        let place = namespace.map_or_else(|| "in all namespaces".to_owned(), |n| format!("in namespace {n}"));
        self.try_list(api, params)
            .await
            .map_err(|error| self.sentence(&error, &format!("list {what}"), &place))
    }

    /// As [`Hub::list`], with the error as it came.
    pub async fn try_list<K>(&self, api: Api<K>, params: &ListParams) -> kube::Result<Vec<K>>
    where
        K: Resource + Clone + DeserializeOwned + Debug,
    {
        let mut params = params.clone().limit(params.limit.unwrap_or(PAGE));
        let mut all = Vec::new();
        loop {
            let page = api.list(&params).await?;
            all.extend(page.items);
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) if params.limit != Some(1) => params.continue_token = Some(token),
                _ => return Ok(all),
            }
        }
    }

    /// What went wrong, as a sentence: what was tried on which hub, and what helps.
    pub fn sentence(&self, error: &kube::Error, tried: &str, object: &str) -> anyhow::Error {
        let url = &self.url;
        match error {
            kube::Error::Api(status) if status.code == 403 => {
                anyhow!("you may not {tried} {object} on the hub {url}: {}", status.message)
            }
            kube::Error::Api(status) if status.code == 401 => {
                anyhow!("the hub {url} does not accept your credentials: {}", status.message)
            }
            kube::Error::Api(status) if status.code == 404 => anyhow!(
                "the hub {url} cannot {tried} {object}: {}; is this the hub, and are the kinds of EMCO installed there?",
                status.message.trim()
            ),
            kube::Error::Api(status) => anyhow!("the hub {url} cannot {tried} {object}: {}", status.message),
            other => anyhow!("the hub {url} cannot be reached: {}", chain(other)),
        }
    }
}

/// Selects the shards of a deployment intent group.
pub fn shards_of(name: &str) -> String {
    OwnerKind::DeploymentIntentGroup.selector(name)
}

/// Labels are for people; the spec says whose a shard is.
pub fn is_of(shard: &SyncShard, name: &str) -> bool {
    shard.spec.owner.kind == OwnerKind::DeploymentIntentGroup && shard.spec.owner.name == name
}

/// Whether the user lacks a right.
pub fn is_forbidden(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 403)
}

/// An error with its causes, each once.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_that_does_not_parse_is_refused_without_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let text = "apiVersion: v1\nkind: Config\nusers:\n- name: me\n  user: {token: [hunter2], password: 90210417}\n";
        std::fs::write(&file, text).unwrap();
        let said = kubeconfig(Some(&file)).unwrap_err().to_string();
        assert!(said.contains("it does not parse as a kubeconfig"), "{said}");
        assert!(!said.contains("hunter2") && !said.contains("90210417"), "{said}");
        let said = kubeconfig(Some(&folder.path().join("absent"))).unwrap_err().to_string();
        assert!(said.contains("absent"), "{said}");
    }
}
