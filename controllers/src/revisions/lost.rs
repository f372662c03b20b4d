//! Rows that say that their content is lost in; what cannot be read any more, as one text that a person can confirm, and, once
//! confirmed, rows that are searched by label instead, out. Nothing is removed that is not named: the scan names it.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::app_context::FORMAT;
use emco_crds::names::annotation;
use emco_engine::shard::{self, Content};
use kube::Resource;
use sha2::{Digest, Sha256};

use super::targets::replace;
use super::{Owner, contents, stored_shards};
use crate::context::{Context, Failure};
use crate::objects;

/// What nobody can read any more.
pub struct Lost {
    /// For people: `revision 3`.
    what: BTreeSet<String>,
    /// Ids of rows that may have it, by name of their shard.
    rows: BTreeMap<String, BTreeSet<i64>>,
}

impl Lost {
    /// Stands for exactly this.
    fn token(&self) -> String {
        let all: Vec<&str> = self.what.iter().map(String::as_str).collect();
        let digest = hex::encode(Sha256::digest(all.join("\0")));
        format!("lost-{}", digest.get(..12).unwrap_or_default())
    }

    /// What is lost, and the command that has it searched for.
    pub fn sentence<K: Resource<DynamicType = ()>>(&self, object: &K, short: &str) -> String {
        let all: Vec<&str> = self.what.iter().take(4).map(String::as_str).collect();
        format!(
            "the content of {} cannot be read: restore it from a backup; where there is none, have what it put on clusters searched by label: kubectl annotate {short} {} -n {} --overwrite {}={}",
            all.join(", "),
            objects::name(object),
            objects::namespace(object),
            annotation::CONFIRM,
            self.token()
        )
    }
}

/// What the rows of an owner cannot read; `None` where no row says so, or where it can be read again.
pub async fn lost(ctx: &Context, owner: &Owner) -> Result<Option<Lost>, Failure> {
    let mut lost = Lost { what: BTreeSet::new(), rows: BTreeMap::new() };
    for stored in stored_shards(ctx, owner).iter().filter(|stored| stored.spec.format <= FORMAT) {
        let status = stored.status.as_ref();
        let saying: BTreeSet<i64> = status
            .iter()
            .flat_map(|status| &status.clusters)
            .filter(|row| row.error.as_ref().is_some_and(|error| error.reason == "ContentLost"))
            .map(|row| row.id)
            .collect();
        if saying.is_empty() {
            continue;
        }
        let contents = contents(ctx, owner, &stored.spec).await?;
        for row in shard::rows(&stored.spec, status).into_iter().filter(|row| saying.contains(&row.id)) {
            let mut missing: BTreeSet<String> =
                row.lost.iter().map(|name| format!("combination {name}")).collect();
            for content in row.may_have.iter().filter(|content| contents.identities(content).is_err()) {
                missing.insert(match content {
                    Content::Sets(target) => format!("revision {}", target.revision),
                    Content::Identities(reference) => format!("pack {}", reference.pack),
                });
            }
            if !missing.is_empty() {
                lost.what.extend(missing);
                let name = objects::name(stored.as_ref()).to_owned();
                lost.rows.entry(name).or_default().insert(row.id);
            }
        }
    }
    Ok((!lost.what.is_empty()).then_some(lost))
}

/// Has clusters searched where a person confirmed exactly what is lost. Whether anything was written.
pub async fn search_confirmed<K: Resource>(
    ctx: &Context,
    owner: &Owner,
    object: &K,
) -> Result<bool, Failure> {
    let Some(said) = objects::annotation(object, annotation::CONFIRM).filter(|s| s.starts_with("lost-"))
    else {
        return Ok(false);
    };
    let Some(lost) = lost(ctx, owner).await?.filter(|lost| lost.token() == said) else { return Ok(false) };
    let mut wrote = false;
    for stored in stored_shards(ctx, owner) {
        let Some(rows) = lost.rows.get(objects::name(stored.as_ref())) else { continue };
        let next = objects::generation(stored.as_ref()) + 1;
        if let Some(spec) = shard::search(&stored.spec, stored.status.as_ref(), next, rows) {
            replace(ctx, &stored, spec).await?;
            wrote = true;
        }
    }
    Ok(wrote)
}
