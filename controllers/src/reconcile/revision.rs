//! Stores what an owner planned as a revision, targets its clusters, and removes all of it: the same for every kind of owner.

use std::collections::BTreeMap;
use std::sync::Arc;

use emco_crds::Conditioned;
use emco_crds::names::finalizer;
use emco_engine::identity::SetDigest;
use emco_engine::set::ManifestSet;
use futures::future::join;
use kube::Resource;
use kube::core::object::HasStatus;

use crate::object::context::Failure;
use crate::object::{Owner, finalizers, transitions};
use crate::reconcile::context::Context;
use crate::reconcile::suspension;
use crate::rows::{self, Removal};
use crate::store::{self, Draft, Stored, TooMuch};

/// What became of a plan in the store.
pub enum Storing {
    /// The newest revision has it already; `None`: nothing was ever stored, and nothing is planned.
    Kept(Option<Stored>),
    /// It is the newest revision.
    New(Stored),
    /// What it was planned with is another one by now, or its project is suspended: nothing of it is targeted.
    Moved,
    /// It does not fit, and nothing was stored.
    TooMuch(TooMuch),
}

/// Stores a plan that is a change; or one that is none, where the newest revision cannot be read any more and its packs cannot be made
/// again. `still_true` is the last look at what it was planned with: it is taken while the revision is written, since a mixture that never
/// existed must not be targeted.
pub async fn store<'a>(
    ctx: &Context,
    owner: &Owner,
    newest: Option<Stored>,
    (changed, sets): (bool, &BTreeMap<SetDigest, Arc<ManifestSet>>),
    draft: impl FnOnce(Option<&Stored>) -> Draft<'a>,
    still_true: impl Future<Output = Result<bool, Failure>>,
) -> Result<Storing, Failure> {
    let whole = match &newest {
        Some(stored) if !changed => rows::repair_packs(ctx, owner, stored, sets).await?,
        _ => !changed,
    };
    if whole {
        return Ok(Storing::Kept(newest));
    }
    if suspension::of_project(&ctx.stores, &owner.namespace) {
        return Ok(Storing::Moved);
    }
    let (stored, still_true) = join(store::commit(ctx, draft(newest.as_ref())), still_true).await;
    Ok(match stored? {
        Err(too_much) => Storing::TooMuch(too_much),
        Ok(stored) if still_true? => Storing::New(stored),
        Ok(_) => Storing::Moved,
    })
}

/// Removes everything of an owner from clusters, then what was stored of it, unless `keep_history`. `None`: it `waits`, and has rows.
pub async fn remove(
    ctx: &Context,
    owner: &Owner,
    waits: bool,
    keep_history: bool,
) -> Result<Option<Removal>, Failure> {
    if waits && rows::has_rows(ctx, owner).await? {
        return Ok(None);
    }
    rows::remove_all(ctx, owner, keep_history).await.map(Some)
}

/// Lets an object go of which nothing is left.
pub async fn release<K>(ctx: &Context, object: &K) -> Result<(), Failure>
where
    K: Resource<DynamicType = ()> + HasStatus,
    K::Status: Conditioned,
{
    if finalizers::remove(ctx, object, finalizer::TERMINATE).await? {
        transitions::removed(ctx, object);
    }
    Ok(())
}
