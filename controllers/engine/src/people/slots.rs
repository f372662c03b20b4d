//! Divides the kubeconfigs of a logical cloud among Secrets by leading bits of their clusters' slots, as rows are divided among shards.

use std::collections::BTreeMap;

use crate::identity::ClusterId;
use crate::shard;

/// A Secret grows no further: API servers refuse more than 1 MiB, of which Base64 is no part.
pub const MOST_BYTES: usize = 640 << 10;
/// Secrets are joined again where all of them together would have no more.
const FEW_BYTES: usize = MOST_BYTES / 4;
/// Most leading bits: 256 Secrets.
const MOST_BITS: i32 = 8;

/// Which clusters a Secret has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slot {
    /// Its number.
    pub number: i64,
    /// Leading bits of the slots; 0 = one Secret for all.
    pub bits: i32,
}

impl Slot {
    /// That of a cluster.
    pub fn of(cluster: &ClusterId, bits: i32) -> Self {
        Self { number: shard::slot(cluster, bits), bits }
    }

    /// Name of its Secret: `edge-kubeconfig-0`, `edge-kubeconfig-3of8`.
    pub fn secret(self, prefix: &str) -> String {
        match self.bits {
            0 => format!("{prefix}-{}", self.number),
            bits => format!("{prefix}-{}of{}", self.number, 1_i64 << bits),
        }
    }

    /// Reads such a name.
    pub fn parse(prefix: &str, name: &str) -> Option<Self> {
        let rest = name.strip_prefix(prefix)?.strip_prefix('-')?;
        let (number, bits) = match rest.split_once("of") {
            None => (rest.parse().ok()?, 0),
            Some((number, of)) => {
                let of: u32 = of.parse().ok()?;
                let bits = i32::try_from(of.trailing_zeros()).ok()?;
                if !of.is_power_of_two() || !(1..=MOST_BITS).contains(&bits) {
                    return None;
                }
                (number.parse().ok()?, bits)
            }
        };
        let slot = Self { number, bits };
        let known = (0..1_i64 << bits).contains(&number) && slot.secret(prefix) == name;
        known.then_some(slot)
    }
}

/// How many leading bits these kubeconfigs need, by their bytes, where Secrets have `now` already. They become more when one Secret would
/// have too much, and none when there is little in all of them: what is written again is then about as much as what changed.
pub fn bits(now: i32, sizes: &BTreeMap<ClusterId, usize>) -> i32 {
    if sizes.values().sum::<usize>() <= FEW_BYTES {
        return 0;
    }
    let largest = |bits: i32| {
        let mut slots = BTreeMap::<i64, usize>::new();
        for (cluster, bytes) in sizes {
            *slots.entry(shard::slot(cluster, bits)).or_default() += bytes;
        }
        slots.into_values().max().unwrap_or_default()
    };
    (now.max(0)..MOST_BITS).find(|bits| largest(*bits) <= MOST_BYTES).unwrap_or(MOST_BITS)
}
