//! One cluster: manifests come in, what an apply there would change goes out.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, anyhow, bail};
use emco_controllers::remote::kubeconfig;
use emco_crds::Cluster;
use emco_crds::names::label;
use emco_engine::cloud::account_parts;
use emco_engine::identity::{ClusterId, Identity, split_api_version};
use emco_engine::set::{Phase, SetManifest};
use emco_engine::{drift, marks};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{ApiResource, DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiCapabilities, Scope, pinned_kind};
use kube::{Api, Client, ResourceExt as _};
use serde_json::Value;

use super::{Change, Difference, compare, theirs};
use crate::cli::hub::{self, Hub, chain};

/// A cluster, as its registered credential.
pub struct Edge {
    /// Its client.
    pub client: Client,
    /// Owner hash of the deployment.
    pub hash: String,
    /// The kubeconfig, where it is the hub's: with it, the account of a logical cloud is asked as, too.
    pub kubeconfig: Option<String>,
    /// Objects are written there by an agent, from a branch.
    pub by_git: bool,
    /// The client is lent: kinds that it may not list are left out.
    pub lent: bool,
}

/// Connects as the operator does: with the kubeconfig of the Secret, by the same rules.
pub async fn connect(hub: &Hub, id: &ClusterId, uid: Option<&str>, hash: String) -> anyhow::Result<Edge> {
    let clusters = Api::<Cluster>::all(hub.client.clone());
    let params = ListParams::default().fields(&format!("metadata.name={}", id.cluster()));
    let found = hub.list(clusters, &params, "clusters", None).await?;
    let mine = |cluster: &Cluster| {
        let provider = cluster.status.as_ref().and_then(|status| status.provider.clone());
        provider.or_else(|| cluster.namespace()).as_deref() == Some(id.provider())
    };
    let cluster =
        found.into_iter().find(mine).with_context(|| format!("there is no Cluster {id} on the hub"))?;
    let by_git = cluster.spec.access.git_ops.is_some();
    if let Some(lender) = &hub.lender {
        return Ok(Edge { by_git, lent: true, ..Edge::of(lender.client(id, uid)?, hash) });
    }
    let text = kubeconfig_of(hub, &cluster).await?;
    let (client, _) = open_stored(&text, uid).await?;
    Ok(Edge { kubeconfig: Some(text), by_git, ..Edge::of(client, hash) })
}

/// A client of a Cluster, if it is the one with this identity; and its identity.
pub async fn open(
    hub: &Hub,
    cluster: &Cluster,
    uid: Option<&str>,
) -> anyhow::Result<(Client, Option<String>)> {
    open_stored(&kubeconfig_of(hub, cluster).await?, uid).await
}

/// The same with a kubeconfig that the hub has.
pub async fn open_stored(text: &str, uid: Option<&str>) -> anyhow::Result<(Client, Option<String>)> {
    let client = hub::client_of(text).await?;
    let system =
        Api::<Namespace>::all(client.clone()).get("kube-system").await.map_err(|error| failed(&error))?;
    if let (Some(known), Some(now)) = (uid, system.uid())
        && known != now
    {
        bail!(
            "another cluster answers behind this name: its kube-system has UID {now}, and {known} is on record"
        );
    }
    Ok((client, system.uid()))
}

/// The kubeconfig that the hub has for a Cluster, by the rules of the operator: no programs, no files.
pub async fn kubeconfig_of(hub: &Hub, cluster: &Cluster) -> anyhow::Result<String> {
    let namespace = cluster.namespace().unwrap_or_default();
    let reference = cluster.spec.access.kubeconfig().context("the Cluster names no kubeconfig")?;
    let secrets = Api::<Secret>::namespaced(hub.client.clone(), &namespace);
    let secret = secrets
        .get_opt(&reference.name)
        .await
        .map_err(|error| hub.sentence(&error, "read secret", &format!("{namespace}/{}", reference.name)))?
        .with_context(|| format!("there is no Secret {} in namespace {namespace}", reference.name))?;
    kubeconfig_in(secret, reference.key.as_deref())
}

/// The kubeconfig in a Secret, by the same rules.
pub fn kubeconfig_in(secret: Secret, key: Option<&str>) -> anyhow::Result<String> {
    let data: BTreeMap<String, Vec<u8>> =
        secret.data.unwrap_or_default().into_iter().map(|(key, bytes)| (key, bytes.0)).collect();
    let bytes = kubeconfig::pick(&data, key)?;
    kubeconfig::read(bytes)?;
    Ok(std::str::from_utf8(bytes).context("the kubeconfig is no text")?.to_owned())
}

/// What a cluster answered, as a sentence.
pub fn failed(error: &kube::Error) -> anyhow::Error {
    match error {
        kube::Error::Api(status) => anyhow!("the cluster refuses: {}", status.message),
        other => anyhow!("the cluster cannot be reached: {}", chain(other)),
    }
}

/// A difference of one object, its sentence, and the fields that would change.
pub(super) type Found = (Change, String, Vec<compare::Field>);

/// Kinds by API version and name, as the cluster serves them.
pub type Kinds = BTreeMap<(String, String), Option<(ApiResource, ApiCapabilities)>>;

impl Edge {
    /// A cluster as it is reached with this client, for objects of one owner.
    pub const fn of(client: Client, hash: String) -> Self {
        Self { client, hash, kubeconfig: None, by_git: false, lent: false }
    }

    /// Compares what is wanted there with what is: how many objects were looked at, and those that differ. `now`: it is wanted at present,
    /// and what the cluster refuses of it is said.
    pub async fn compare(
        &self,
        wanted: &[(String, SetManifest)],
        before: &[Identity],
        now: bool,
    ) -> anyhow::Result<(usize, Vec<Difference>)> {
        let mut kinds = Kinds::new();
        let scaled = drift::scaled(wanted.iter().map(|(_, manifest)| &manifest.json));
        let mut differences = Vec::new();
        let mut compared = 0;
        let account = wanted.iter().find_map(|(_, manifest)| manifest.account.as_deref());
        let account = account.filter(|account| account_parts(account).is_some());
        let acting = match (&self.kubeconfig, account) {
            (Some(text), Some(account)) => Some(hub::client_as(text, account).await?),
            _ => None,
        };
        // What hooks leave behind is theirs.
        let lasting = |manifest: &SetManifest| matches!(manifest.phase, Phase::Foundation | Phase::Main);
        for (app, manifest) in wanted.iter().filter(|(_, manifest)| lasting(manifest)) {
            compared += 1;
            let id = manifest.identity();
            let resource = self.resource(&mut kinds, &manifest.json).await?;
            let Some((resource, capabilities)) = resource else {
                differences.push(Difference {
                    app: Some(app.clone()),
                    object: id.to_string(),
                    change: Change::Refused,
                    message: "the cluster does not serve this kind".to_owned(),
                    fields: Vec::new(),
                });
                continue;
            };
            let api = self.api(&resource, &capabilities, &id.namespace);
            let acting =
                acting.as_ref().map(|client| objects(client, &resource, &capabilities, &id.namespace));
            let mut found = self.one((&api, acting.as_ref()), manifest, scaled.contains(&id)).await?;
            if now {
                found = Box::pin(self.with_refusal(found, (&resource, &capabilities), manifest)).await?;
            }
            differences.extend(found.map(|(change, message, fields)| Difference {
                app: Some(app.clone()),
                object: id.to_string(),
                change,
                message,
                fields,
            }));
        }
        let mut names = BTreeSet::new();
        for (_, manifest) in wanted {
            let mut id = manifest.identity();
            // A kind that was unknown when it was planned has a namespace, wherever it lives.
            let resource = self.resource(&mut kinds, &manifest.json).await?;
            if resource.is_some_and(|(_, capabilities)| capabilities.scope == Scope::Cluster) {
                id.namespace.clear();
            }
            names.insert(id);
        }
        differences.extend(self.left(&mut kinds, wanted, before, &names).await?);
        Ok((compared, differences))
    }

    /// Objects of a kind.
    pub fn api(
        &self,
        resource: &ApiResource,
        capabilities: &ApiCapabilities,
        namespace: &str,
    ) -> Api<DynamicObject> {
        objects(&self.client, resource, capabilities, namespace)
    }

    /// The kind of a manifest, as the cluster serves it.
    pub async fn resource(
        &self,
        kinds: &mut Kinds,
        manifest: &Value,
    ) -> anyhow::Result<Option<(ApiResource, ApiCapabilities)>> {
        let text = |key: &str| manifest[key].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        if let Some(known) = kinds.get(&(api_version.clone(), kind.clone())) {
            return Ok(known.clone());
        }
        let (group, version) = split_api_version(&api_version);
        let found = match pinned_kind(&self.client, &GroupVersionKind::gvk(group, version, &kind)).await {
            Ok(found) => Some(found),
            Err(kube::Error::Discovery(_)) => None,
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => return Err(failed(&error)),
        };
        kinds.insert((api_version, kind), found.clone());
        Ok(found)
    }

    /// One object; nothing where it is as wanted. What the credentials of the Cluster may not try, the account tries.
    async fn one(
        &self,
        (api, acting): (&Api<DynamicObject>, Option<&Api<DynamicObject>>),
        manifest: &SetManifest,
        scaled: bool,
    ) -> anyhow::Result<Option<Found>> {
        let name = manifest.identity().name;
        let Some(live) = api.get_opt(&name).await.map_err(|error| failed(&error))? else {
            return Ok(Some((Change::Create, String::new(), Vec::new())));
        };
        let owner = live.labels().get(label::OWNER);
        if owner != Some(&self.hash) {
            // Taken as they are: see the set's manifests.
            if manifest.crd_folder || manifest.take_existing {
                return Ok(None);
            }
            let whose = owner.map_or("no owner of EMCO", |_| "another owner of EMCO");
            return Ok(Some((Change::Foreign, format!("it is there and has {whose}"), Vec::new())));
        }
        if manifest.crd_folder {
            return Ok(None);
        }
        let live = serde_json::to_value(&live).context("an object cannot be read")?;
        let annotations = &live["metadata"]["annotations"];
        let placed_by = annotations[emco_crds::names::annotation::PLACED_BY].as_str().unwrap_or_default();
        let manager = marks::field_manager(&self.hash);
        let said = theirs::beside(&manifest.json, &live, &manager);
        let wanted = marks::mark(said, &self.hash, &manifest.digest, placed_by);
        let mut wanted = if marks::is_adopted(&live) { marks::adopt(wanted) } else { wanted };
        // The credential of the hub only reads there: what the agent would leave is not asked.
        if self.by_git {
            let fields = compare::fields(&live, &known_to(&live, &wanted));
            return Ok((!fields.is_empty()).then_some((Change::Update, String::new(), fields)));
        }
        let acting = acting.filter(|_| manifest.account.is_some());
        let mut fields = match theirs::tried((api, acting), &name, &manager, &mut wanted).await {
            Ok(applied) => {
                compare::fields(&live, &serde_json::to_value(&applied).context("an answer cannot be read")?)
            }
            // The operator leaves out fields that a cluster does not know; the rest is compared without the server.
            Err(kube::Error::Api(status)) if status.message.contains("typed patch object") => {
                let message = "it has fields that the cluster does not know, which are left out";
                let known = known_to(&live, &wanted);
                let fields = compare::fields(&live, &known);
                return Ok((!fields.is_empty()).then(|| (Change::Update, message.to_owned(), fields)));
            }
            Err(kube::Error::Api(status)) => {
                return Ok(Some((Change::Refused, status.message.clone(), Vec::new())));
            }
            Err(error) => return Err(failed(&error)),
        };
        let scaled = scaled || theirs::is_scaled(&live);
        fields.retain(|field| !(scaled && field.path == "spec.replicas"));
        Ok((!fields.is_empty()).then_some((Change::Update, String::new(), fields)))
    }

    /// Objects of the deployment that no manifest has any more.
    async fn left(
        &self,
        kinds: &mut Kinds,
        wanted: &[(String, SetManifest)],
        before: &[Identity],
        names: &BTreeSet<Identity>,
    ) -> anyhow::Result<Vec<Difference>> {
        let mut looked: BTreeSet<(String, String)> = BTreeSet::new();
        let mut found = Vec::new();
        let namespaces: BTreeSet<&str> = names
            .iter()
            .chain(before)
            .map(|id| id.namespace.as_str())
            .filter(|there| !there.is_empty())
            .collect();
        for (_, manifest) in wanted {
            let Some((resource, _)) = self.resource(kinds, &manifest.json).await? else { continue };
            if !looked.insert((resource.group.clone(), resource.kind.clone())) {
                continue;
            }
            found.extend(self.labelled(&resource, &namespaces).await?);
        }
        let missing: BTreeSet<(&str, &str)> = before
            .iter()
            .map(|id| (id.group.as_str(), id.kind.as_str()))
            .filter(|(group, kind)| !looked.contains(&((*group).to_owned(), (*kind).to_owned())))
            .collect();
        for (group, kind) in missing {
            let Ok(group) = kube::discovery::group(&self.client, group).await else { continue };
            let Some((resource, _)) = group.recommended_kind(kind) else { continue };
            found.extend(self.labelled(&resource, &namespaces).await?);
        }
        let gone = |id: &Identity| Difference {
            app: None,
            object: id.to_string(),
            change: Change::Remove,
            message: String::new(),
            fields: Vec::new(),
        };
        Ok(found.iter().filter(|id| !names.contains(*id)).map(gone).collect())
    }

    /// Objects of the owner of a kind: on the whole cluster, or where that may not be listed, in these namespaces.
    async fn labelled(
        &self,
        resource: &ApiResource,
        namespaces: &BTreeSet<&str>,
    ) -> anyhow::Result<Vec<Identity>> {
        let everywhere: Api<DynamicObject> = Api::all_with(self.client.clone(), resource);
        match self.labelled_in(&everywhere, resource).await {
            Err(error) if hub::is_forbidden(&error) && !namespaces.is_empty() => {}
            found => return found.map_err(|error| failed(&error)),
        }
        let mut all = Vec::new();
        for namespace in namespaces {
            let api = Api::namespaced_with(self.client.clone(), namespace, resource);
            match self.labelled_in(&api, resource).await {
                Err(error) if self.lent && hub::is_forbidden(&error) => {}
                found => all.extend(found.map_err(|error| failed(&error))?),
            }
        }
        Ok(all)
    }

    async fn labelled_in(
        &self,
        api: &Api<DynamicObject>,
        resource: &ApiResource,
    ) -> kube::Result<Vec<Identity>> {
        let params = ListParams::default().labels(&format!("{}={}", label::OWNER, self.hash));
        let list = match api.list_metadata(&params).await {
            Ok(list) => list,
            // Kinds without lists, such as reviews.
            Err(kube::Error::Api(status)) if status.code == 405 || status.code == 404 => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(error),
        };
        let identity = |object: &kube::core::PartialObjectMeta<DynamicObject>| Identity {
            group: resource.group.clone(),
            kind: resource.kind.clone(),
            namespace: object.namespace().unwrap_or_default(),
            name: object.name_any(),
        };
        Ok(list.items.iter().map(identity).collect())
    }
}

/// Objects of a kind, with this client.
fn objects(
    client: &Client,
    resource: &ApiResource,
    capabilities: &ApiCapabilities,
    namespace: &str,
) -> Api<DynamicObject> {
    match capabilities.scope {
        Scope::Cluster => Api::all_with(client.clone(), resource),
        Scope::Namespaced => Api::namespaced_with(client.clone(), namespace, resource),
    }
}

/// The live object with the values of a manifest, as far as the live one has such fields.
fn known_to(live: &Value, wanted: &Value) -> Value {
    match (live, wanted) {
        (Value::Object(live), Value::Object(wanted)) => Value::Object(
            live.iter()
                .map(|(key, value)| {
                    let value =
                        wanted.get(key).map_or_else(|| value.clone(), |wanted| known_to(value, wanted));
                    (key.clone(), value)
                })
                .collect(),
        ),
        (Value::Array(live), Value::Array(wanted)) if live.len() == wanted.len() => {
            Value::Array(live.iter().zip(wanted).map(|(live, wanted)| known_to(live, wanted)).collect())
        }
        _ => wanted.clone(),
    }
}
