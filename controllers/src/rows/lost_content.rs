//! Names lost content as one text that a person can confirm, and makes confirmed rows search by label instead. Nothing
//! is removed that is not named: the scan names it.

use std::collections::{BTreeMap, BTreeSet};

use emco_crds::SyncShard;
use emco_crds::app_context::FORMAT;
use emco_crds::names::annotation;
use emco_engine::shard::{self, Content};
use kube::Resource;
use sha2::{Digest, Sha256};

use crate::object::Owner;
use crate::object::context::Failure;
use crate::object::meta;
use crate::store::{StoreContext, contents_of, replace, stored_shards};

/// What nobody can read any more.
pub struct Lost {
    /// For people: `revision 3`.
    what: BTreeSet<String>,
    /// Ids of rows that may have it, by name of their shard.
    rows: BTreeMap<String, BTreeSet<i64>>,
    /// Those rows, each with since when it may have what is lost. None of it comes again after its cluster was searched.
    since: BTreeSet<String>,
}

impl Lost {
    /// Stands for exactly this loss: what is lost, and where. The same content lost later, or by an owner that was made
    /// again, has another text.
    fn token(&self) -> String {
        let all: Vec<&str> = self.what.iter().chain(&self.since).map(String::as_str).collect();
        let digest = hex::encode(Sha256::digest(all.join("\0")));
        format!("lost-{}", digest.get(..12).unwrap_or_default())
    }

    /// What is lost, and the command that has it searched for.
    pub fn sentence<K: Resource<DynamicType = ()>>(&self, object: &K, short: &str) -> String {
        let all: Vec<&str> = self.what.iter().take(4).map(String::as_str).collect();
        format!(
            "the content of {} cannot be read: restore it from a backup; where there is none, have what it put on clusters searched by label: kubectl annotate {short} {} -n {} --overwrite {}={}",
            all.join(", "),
            meta::name(object),
            meta::namespace(object),
            annotation::CONFIRM,
            self.token()
        )
    }
}

/// What the rows of an owner cannot read; `None` where no row says so, or where it can be read again. Once one row says so, all
/// rows are looked at: those of clusters that are away may have it, too, and are searched when they are back.
pub async fn lost_content(ctx: &StoreContext, owner: &Owner) -> Result<Option<Lost>, Failure> {
    let mut lost = Lost { what: BTreeSet::new(), rows: BTreeMap::new(), since: BTreeSet::new() };
    let shards = stored_shards(ctx, owner);
    let readable = || shards.iter().filter(|stored| stored.spec.format <= FORMAT);
    if !readable().any(|stored| says_lost(stored)) {
        return Ok(None);
    }
    for stored in readable() {
        let contents = contents_of(ctx, owner, &stored.spec).await?;
        for row in shard::rows(&stored.spec, stored.status.as_ref()) {
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
                let uid = meta::uid(stored.as_ref());
                lost.since.insert(format!("{uid} {} {}", row.id, row.held_since));
                let name = meta::name(stored.as_ref()).to_owned();
                lost.rows.entry(name).or_default().insert(row.id);
            }
        }
    }
    Ok((!lost.what.is_empty()).then_some(lost))
}

fn says_lost(stored: &SyncShard) -> bool {
    let rows = stored.status.iter().flat_map(|status| &status.clusters);
    rows.filter_map(|row| row.error.as_ref()).any(|error| error.reason == "ContentLost")
}

/// Has clusters searched where a person confirmed exactly what is lost. Whether anything was written.
pub async fn search_confirmed<K: Resource>(
    ctx: &StoreContext,
    owner: &Owner,
    object: &K,
) -> Result<bool, Failure> {
    let Some(said) = meta::annotation(object, annotation::CONFIRM).filter(|s| s.starts_with("lost-")) else {
        return Ok(false);
    };
    let Some(lost) = lost_content(ctx, owner).await?.filter(|lost| lost.token() == said) else {
        return Ok(false);
    };
    let mut wrote = false;
    for stored in stored_shards(ctx, owner) {
        let Some(rows) = lost.rows.get(meta::name(stored.as_ref())) else { continue };
        let next = meta::writes(&stored) + 1;
        if let Some(spec) = shard::search(&stored.spec, stored.status.as_ref(), next, rows) {
            replace(ctx, &stored, spec).await?;
            wrote = true;
        }
    }
    Ok(wrote)
}
