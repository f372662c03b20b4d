//! Shortens a row that may have too many things to one identity set.

use std::collections::BTreeSet;

use emco_crds::SyncShardSpec;
use emco_crds::sync_shard::{Held, IdentitiesRef};

use super::{Content, MOST_HELD, by_name, target};
use crate::identity::Identity;
use crate::pack::{PackObject, write_identities};

/// A spec whose rows are short again, and the packs it names: they are stored and acknowledged before the spec is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Collapsed {
    /// The spec.
    pub spec: SyncShardSpec,
    /// To be stored first.
    pub packs: Vec<PackObject>,
}

/// Whose content could not be read, so that a row cannot be shortened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{cluster}: {what}")]
pub struct Named {
    /// The cluster of the row.
    pub cluster: String,
    /// What is missing or too large.
    pub what: String,
}

/// Ids of the rows that hold more than [`MOST_HELD`] entries.
pub fn overlong(spec: &SyncShardSpec) -> Vec<i64> {
    spec.clusters.iter().filter(|row| row.held.len() > MOST_HELD).map(|row| row.id).collect()
}

/// Replaces what long rows hold by one set of identities each. `identities_of` reads the objects of a combination or of an
/// earlier identity set; what it cannot read stops everything, because an inventory with a hole is none.
///
/// The set counts from the latest write of what it replaces: who worked that off has worked off all of it.
pub fn collapse_held(
    mut spec: SyncShardSpec,
    mut identities_of: impl FnMut(&Content) -> Result<BTreeSet<Identity>, String>,
) -> Result<Collapsed, Named> {
    let long: BTreeSet<i64> = overlong(&spec).into_iter().collect();
    let names = spec.clone();
    let combinations = by_name(&names);
    let mut packs: Vec<PackObject> = Vec::new();
    for row in spec.clusters.iter_mut().filter(|row| long.contains(&row.id)) {
        let failed = |what: String| Named { cluster: row.cluster.clone(), what };
        let mut all = BTreeSet::new();
        let mut latest = 0;
        let searches = |held: &&Held| {
            let target = held.combination.as_deref().and_then(|name| combinations.get(name));
            target.is_some_and(|target| target.revision == super::FOUND)
        };
        // What is found by label has no names.
        let found: Vec<Held> = row.held.iter().filter(searches).cloned().collect();
        for Held { combination, identities, since } in row.held.iter().filter(|held| !searches(held)) {
            latest = latest.max(*since);
            if let Some(name) = combination {
                let found = combinations.get(name.as_str()).map(|c| Content::Sets(target(c)));
                let found = found.ok_or_else(|| failed(format!("the shard has no combination {name}")))?;
                all.extend(identities_of(&found).map_err(failed)?);
            }
            if let Some(pack) = identities {
                all.extend(identities_of(&Content::Identities(pack.clone())).map_err(failed)?);
            }
        }
        let pack = write_identities(&names.owner.uid, &all).map_err(|error| failed(error.to_string()))?;
        let identities = IdentitiesRef { pack: pack.name.clone(), digest: pack.digest.clone() };
        row.held = vec![Held { combination: None, identities: Some(identities), since: latest }];
        row.held.extend(found);
        if !packs.contains(&pack) {
            packs.push(pack);
        }
    }
    Ok(Collapsed { spec, packs })
}
