//! Reads the identities of the objects behind what a shard names.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use emco_crds::SyncShardSpec;
use emco_crds::app_context::PackKind;
use emco_engine::identity::{Identity, SetDigest};
use emco_engine::pack::Pack;
use emco_engine::set::ManifestSet;
use emco_engine::shard::{Content, Target};
use emco_engine::snapshot::Running;

use super::context::StoreContext;
use super::load::{contexts, load};
use super::packs::{pack_bytes, pack_collection};
use crate::api::ApiServerExt;
use crate::object::Owner;
use crate::object::context::Failure;

/// Revisions and identity sets that a shard names, read.
pub struct Contents {
    revisions: BTreeMap<i64, Arc<Running>>,
    identities: BTreeMap<String, BTreeSet<Identity>>,
}

/// Reads everything that the rows of a shard hold. What is missing is missing in the answer.
pub async fn contents(ctx: &StoreContext, owner: &Owner, spec: &SyncShardSpec) -> Result<Contents, Failure> {
    let wanted: BTreeSet<i64> = spec.combinations.iter().map(|combination| combination.revision).collect();
    let mut revisions = BTreeMap::new();
    for context in contexts(ctx, owner).iter().filter(|context| wanted.contains(&context.spec.revision)) {
        if let Ok(running) = load(ctx, context).await? {
            revisions.insert(context.spec.revision, running);
        }
    }
    let packs: BTreeSet<&str> = spec
        .clusters
        .iter()
        .flat_map(|row| row.held.iter().filter_map(|held| held.identities.as_ref().map(|i| i.pack.as_str())))
        .collect();
    let mut identities = BTreeMap::new();
    for name in packs {
        let path = pack_collection(&ctx.namespace, PackKind::ConfigMap).then(name);
        let bytes = ctx.hub().get_opt(&path).await?.as_ref().and_then(pack_bytes);
        if let Some(Ok(Some(set))) = bytes.map(|bytes| Pack::read(&bytes).and_then(|pack| pack.identities()))
        {
            identities.insert(name.to_owned(), set);
        }
    }
    Ok(Contents { revisions, identities })
}

impl Contents {
    /// A set of a combination; `None` where it cannot be read.
    pub fn set(&self, target: &Target, digest: &SetDigest) -> Option<&Arc<ManifestSet>> {
        self.revisions.get(&target.revision)?.sets.get(digest)
    }

    /// Objects behind one content.
    pub fn identities(&self, content: &Content) -> Result<BTreeSet<Identity>, String> {
        match content {
            Content::Identities(reference) => self
                .identities
                .get(&reference.pack)
                .cloned()
                .ok_or_else(|| format!("the identity set {} cannot be read", reference.pack)),
            // It names nothing: a scan of the cluster finds it.
            Content::Sets(target) if target.is_found() => Ok(BTreeSet::new()),
            Content::Sets(target) => {
                let missing = |what: &str| format!("{what} of revision {} cannot be read", target.revision);
                let running = self.revisions.get(&target.revision).ok_or_else(|| missing("the content"))?;
                let mut all = BTreeSet::new();
                for (app, digest) in &target.apps {
                    let set = running.sets.get(digest).ok_or_else(|| missing(app))?;
                    all.extend(set.manifests.iter().map(emco_engine::set::SetManifest::identity));
                }
                Ok(all)
            }
        }
    }
}
