//! Keeps the kubeconfigs of a logical cloud in Secrets beside it: reads them once, writes what changed, and empties them.
//!
//! Emptied and not deleted: the right to delete Secrets would be one to delete those of tenants, too. The Secrets name the logical cloud as their
//! owner, so the hub's garbage collector removes them after it.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::LogicalCloud;
use emco_crds::names::label;
use emco_engine::identity::ClusterId;
use emco_engine::path::ApiPath;
use emco_engine::people::{self, MERGED_KEY, MOST_MERGED, Slot, Stored};
use emco_engine::selector::LabelSelector;
use kube::Resource as _;
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use super::Issued;
use super::index::{Entry, Index, Kept};
use crate::api::{ApiResult, ApiServerExt, Method, Request, pages};
use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::store::StoreContext;
use crate::tenancy::namespace_access;

/// How the names of the Secrets of a logical cloud begin; the name of the one with the kubeconfig of all clusters.
pub(crate) fn prefix(cloud: &str) -> String {
    format!("{cloud}-kubeconfig")
}

/// Keys with what they hold; `null` removes one.
type Data = BTreeMap<String, Zeroizing<String>>;

/// The Secrets of one logical cloud.
pub(crate) struct Secrets<'a> {
    ctx: &'a StoreContext,
    owner: &'a Owner,
    prefix: String,
}

impl<'a> Secrets<'a> {
    pub fn of(ctx: &'a StoreContext, owner: &'a Owner) -> Self {
        Self { ctx, owner, prefix: prefix(&owner.name) }
    }

    fn collection(&self) -> ApiPath {
        ApiPath::core(&self.owner.namespace, "secrets")
    }

    /// Reads all of them.
    pub async fn read(&self) -> Result<Index, Failure> {
        match self.all().await {
            Err(Failure::Hub(error)) => {
                namespace_access::refused(self.ctx, &self.owner.namespace, &error).await;
                Err(error.into())
            }
            other => other,
        }
    }

    async fn all(&self) -> Result<Index, Failure> {
        let list = Request::new(Method::Get, self.collection())
            .labels(&LabelSelector::is(label::OWNER, &self.owner.hash))
            .metadata();
        let mut names = BTreeSet::new();
        pages(self.ctx.hub(), list, |item| {
            names.extend(item.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned));
        })
        .await?;
        let mut index = Index::default();
        for name in
            names.iter().filter(|name| **name == self.prefix || Slot::parse(&self.prefix, name).is_some())
        {
            if let Some(object) = self.ctx.hub().get_opt(self.collection().then(name)).await? {
                index.secrets.insert(name.clone(), self.kept(name, &object));
            }
        }
        for name in [self.prefix.clone(), Slot { number: 0, bits: 0 }.secret(&self.prefix)] {
            let theirs = !index.secrets.contains_key(&name)
                && self.ctx.hub().get_opt(self.collection().then(&name)).await?.is_some();
            if theirs {
                index.taken = Some(name);
            }
        }
        index.merged = self.is_merged(&index).await?;
        Ok(index)
    }

    fn kept(&self, name: &str, object: &Value) -> Kept {
        let text = |key: &str| {
            object.pointer(&format!("/metadata/{key}")).and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let slot = Slot::parse(&self.prefix, name);
        let data = object.get("data").and_then(Value::as_object);
        let entry = |(key, value): (&String, &Value)| {
            let text = decoded(value)?;
            let entry = Entry { stored: people::read(&text)?, bytes: text.len() };
            Some((people::cluster_of(key)?, entry))
        };
        let entries = data.into_iter().flatten().filter(|_| slot.is_some()).filter_map(entry).collect();
        let filled = data.is_some_and(|data| !data.is_empty());
        Kept { uid: text("uid"), version: text("resourceVersion"), slot, entries, filled }
    }

    /// What the Secrets of these names hold.
    async fn contents<'n>(&self, names: impl IntoIterator<Item = &'n String>) -> Result<Data, Failure> {
        let mut data: BTreeMap<String, (Stored, Zeroizing<String>)> = BTreeMap::new();
        for name in names {
            let Some(object) = self.ctx.hub().get_opt(self.collection().then(name)).await? else { continue };
            for (key, value) in object.get("data").and_then(Value::as_object).into_iter().flatten() {
                let Some(text) = decoded(value) else { continue };
                let (Some(_), Some(stored)) = (people::cluster_of(key), people::read(&text)) else {
                    continue;
                };
                match data.get(key) {
                    Some((known, _)) if known.issued >= stored.issued => {}
                    _ => drop(data.insert(key.clone(), (stored, text))),
                }
            }
        }
        Ok(data.into_iter().map(|(key, (_, text))| (key, text)).collect())
    }

    /// Whether the kubeconfig of all clusters is what it has to be.
    async fn is_merged(&self, index: &Index) -> Result<bool, Failure> {
        let filled = index.secrets.get(&self.prefix).is_some_and(|kept| kept.filled);
        let clusters = index.sizes().len();
        if clusters == 0 || clusters > MOST_MERGED || index.taken.is_some() {
            return Ok(!filled);
        }
        let Some(object) = self.ctx.hub().get_opt(self.collection().then(&self.prefix)).await? else {
            return Ok(false);
        };
        let there = object.pointer(&format!("/data/{MERGED_KEY}")).and_then(decoded);
        let data = self.contents(slots(index)).await?;
        Ok(there.as_ref().map(|text| text.as_str()) == merged(&data).as_deref())
    }

    /// Makes the Secrets hold what was issued, and nothing of the clusters in `removed`. What was known is right only where this succeeds.
    pub async fn write(
        &self,
        cloud: &LogicalCloud,
        mut index: Index,
        issued: BTreeMap<ClusterId, Issued>,
        removed: &BTreeSet<ClusterId>,
    ) -> Result<Index, Failure> {
        if issued.is_empty() && removed.is_empty() && index.in_order() {
            return Ok(index);
        }
        let mut sizes = index.sizes();
        sizes.retain(|cluster, _| !removed.contains(cluster));
        sizes.extend(issued.iter().map(|(cluster, one)| (cluster.clone(), one.text.len())));
        let (before, bits) = (index.bits(), people::bits(index.bits(), &sizes));
        let divided = before != bits || !index.in_order();
        // Where Secrets are divided anew, everything moves; else only what is new is written.
        let mut moving = if divided { self.contents(slots(&index)).await? } else { Data::new() };
        moving.retain(|key, _| people::cluster_of(key).is_some_and(|cluster| !removed.contains(&cluster)));
        moving.extend(issued.into_iter().map(|(cluster, one)| (people::key_of(&cluster), one.text)));
        let mut shares: BTreeMap<Slot, Data> = BTreeMap::new();
        for (key, text) in moving {
            if let Some(cluster) = people::cluster_of(&key) {
                shares.entry(Slot::of(&cluster, bits)).or_default().insert(key, text);
            }
        }
        for (slot, share) in &shares {
            self.put(cloud, &mut index, &slot.secret(&self.prefix), Some(*slot), share).await?;
        }
        // What moved is elsewhere by now.
        let names: Vec<String> = slots(&index).cloned().collect();
        for name in names {
            self.drop_keys(&mut index, &name, |slot, cluster| {
                removed.contains(cluster) || slot != Slot::of(cluster, bits)
            })
            .await?;
        }
        self.merge(cloud, &mut index).await?;
        index.merged = true;
        Ok(index)
    }

    async fn merge(&self, cloud: &LogicalCloud, index: &mut Index) -> Result<(), Failure> {
        let clusters = index.sizes().len();
        let data = if clusters == 0 || clusters > MOST_MERGED {
            Data::new()
        } else {
            self.contents(slots(index)).await?
        };
        let whole = merged(&data).filter(|text| text.len() <= people::MOST_BYTES + people::MOST_BYTES / 2);
        match whole {
            Some(text) => {
                let share = Data::from([(MERGED_KEY.to_owned(), Zeroizing::new(text))]);
                let name = self.prefix.clone();
                self.put(cloud, index, &name, None, &share).await
            }
            None => self.empty(index, &self.prefix.clone()).await,
        }
    }

    /// Writes keys into a Secret, which is made where it is not there.
    async fn put(
        &self,
        cloud: &LogicalCloud,
        index: &mut Index,
        name: &str,
        slot: Option<Slot>,
        share: &Data,
    ) -> Result<(), Failure> {
        let data: Map<String, Value> =
            share.iter().map(|(key, text)| (key.clone(), json!(STANDARD.encode(text.as_bytes())))).collect();
        // One that a logical cloud of the same name left is this one's from now on, or it would be collected.
        let answer = match index.secrets.get(name) {
            Some(kept) => {
                let metadata = json!({"uid": kept.uid, "ownerReferences": [self.reference(cloud)]});
                let patch = json!({"metadata": metadata, "data": data});
                self.ctx.hub().merge(self.collection().then(name), &patch).await?
            }
            None => self.create(cloud, name, slot, &Value::Object(data)).await?,
        };
        let kept = self.kept(name, &answer);
        index.secrets.insert(name.to_owned(), kept);
        Ok(())
    }

    fn reference(&self, cloud: &LogicalCloud) -> Value {
        json!({
            "apiVersion": LogicalCloud::api_version(&()), "kind": self.owner.kind, "name": self.owner.name,
            "uid": meta::uid(cloud),
        })
    }

    async fn create(
        &self,
        cloud: &LogicalCloud,
        name: &str,
        slot: Option<Slot>,
        data: &Value,
    ) -> Result<Value, Failure> {
        let mut labels = self.owner.labels();
        labels.extend(slot.map(|slot| (label::SLOT, slot.number.to_string())));
        let object = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {"name": name, "labels": labels, "ownerReferences": [self.reference(cloud)]},
            "data": data,
        });
        match self.ctx.hub().create(self.collection(), &object).await {
            Err(error) if error.already_exists() => Err(Failure::Stored(taken(self.owner, name))),
            other => Ok(other?),
        }
    }

    /// Changes keys of the Secret that was read, and of no other one of its name.
    async fn patch(&self, name: &str, uid: &str, data: &Value) -> ApiResult<Value> {
        let patch = json!({"metadata": {"uid": uid}, "data": data});
        self.ctx.hub().merge(self.collection().then(name), &patch).await
    }

    /// Takes keys out of a Secret.
    async fn drop_keys(
        &self,
        index: &mut Index,
        name: &str,
        drops: impl Fn(Slot, &ClusterId) -> bool,
    ) -> Result<(), Failure> {
        let Some(kept) = index.secrets.get(name) else { return Ok(()) };
        let Some(slot) = kept.slot else { return Ok(()) };
        let data: Map<String, Value> = kept
            .entries
            .keys()
            .filter(|cluster| drops(slot, cluster))
            .map(|cluster| (people::key_of(cluster), Value::Null))
            .collect();
        if data.is_empty() {
            return Ok(());
        }
        let answer = self.patch(name, &kept.uid, &Value::Object(data)).await?;
        let kept = self.kept(name, &answer);
        index.secrets.insert(name.to_owned(), kept);
        Ok(())
    }

    async fn empty(&self, index: &mut Index, name: &str) -> Result<(), Failure> {
        let Some(kept) = index.secrets.get(name).filter(|kept| kept.filled) else { return Ok(()) };
        match self.patch(name, &kept.uid, &Value::Null).await {
            Err(error) if error.lacks(name) => drop(index.secrets.remove(name)),
            Err(error) => return Err(error.into()),
            Ok(answer) => {
                let kept = self.kept(name, &answer);
                index.secrets.insert(name.to_owned(), kept);
            }
        }
        Ok(())
    }

    /// Takes everything out of all of them.
    pub async fn clear(&self, mut index: Index) -> Result<(), Failure> {
        let names: Vec<String> = index.secrets.keys().cloned().collect();
        for name in names {
            self.empty(&mut index, &name).await?;
        }
        Ok(())
    }
}

/// What is said of a Secret of somebody else that is in the way.
pub(crate) fn taken(owner: &Owner, name: &str) -> String {
    format!(
        "Secret {}/{name} was not made for LogicalCloud {}, so kubeconfigs cannot be kept there: rename or delete it",
        owner.namespace, owner.name
    )
}

/// Names of the Secrets that hold a kubeconfig for each cluster.
fn slots(index: &Index) -> impl Iterator<Item = &String> {
    index.secrets.iter().filter(|(_, kept)| kept.slot.is_some()).map(|(name, _)| name)
}

fn merged(data: &Data) -> Option<String> {
    people::merged(data.values().map(|text| text.as_str()))
}

/// A value of a Secret as text.
fn decoded(value: &Value) -> Option<Zeroizing<String>> {
    let bytes = STANDARD.decode(value.as_str()?).ok()?;
    String::from_utf8(bytes).ok().map(Zeroizing::new)
}
