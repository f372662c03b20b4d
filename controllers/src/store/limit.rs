//! Says whether another revision fits into a Project's limit of stored bytes.

use std::collections::BTreeMap;

use emco_crds::fields::{IntOrText, Quantity};
use emco_engine::pack::PackObject;

use super::context::StoreContext;
use super::history::last_good;
use super::load::contexts;
use super::shards::named_by_shards;
use crate::object::Owner;

/// What an owner may store where its Project says nothing: 256 MiB.
const USUAL: u64 = 256 * 1024 * 1024;
/// What a whole Project may store where it says nothing: 1 GiB.
const USUAL_TOTAL: u64 = 1024 * 1024 * 1024;

/// How much an owner may store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Bytes.
    pub bytes: u64,
    /// As it was written.
    pub text: String,
    /// Revisions that are kept, the newest included.
    pub history: usize,
    /// What the whole Project may store, as it was written too; `None` of owners that no tenant makes large: neither that nor the bound of
    /// the installation holds for them.
    pub project: Option<(u64, String)>,
}

/// A revision that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TooMuch {
    /// What would be stored with it, of whom the bound is.
    pub bytes: u64,
    /// What it has alone.
    pub own: u64,
    /// Which bound that is beyond.
    pub of: Bound,
}

/// A bound of what is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Of one owner.
    Owner,
    /// Of a whole Project, as it was written.
    Project(String),
    /// Of the installation, in bytes.
    Installation(u64),
}

impl Limit {
    /// The limit of a Project, for an owner that keeps so many revisions.
    pub fn of(stored_bytes: Option<&Quantity>, history: usize) -> Self {
        let (bytes, text) = match stored_bytes {
            Some(quantity) => (bytes(quantity), quantity_text(quantity)),
            None => (USUAL, "256Mi".to_owned()),
        };
        Self { bytes, text, history, project: None }
    }

    /// The same of an owner that counts with all others of its Project.
    #[must_use]
    pub fn within(self, total: Option<&Quantity>) -> Self {
        let project = match total {
            Some(quantity) => (bytes(quantity), quantity_text(quantity)),
            None => (USUAL_TOTAL, "1Gi".to_owned()),
        };
        Self { project: Some(project), ..self }
    }
}

fn quantity_text(quantity: &Quantity) -> String {
    match &quantity.0 {
        IntOrText::Int(number) => number.to_string(),
        IntOrText::Text(text) => text.clone(),
    }
}

/// A quantity in whole bytes; parts of a byte do not count. What the schema would have refused allows nothing.
fn bytes(quantity: &Quantity) -> u64 {
    let text = quantity_text(quantity);
    let text = text.trim_start_matches('+');
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let Ok(number) = number.parse::<f64>() else { return 0 };
    let factor = match unit {
        "" => 1.0,
        "n" => 1e-9,
        "u" => 1e-6,
        "m" => 1e-3,
        "k" => 1e3,
        "M" => 1e6,
        "G" => 1e9,
        "T" => 1e12,
        "P" => 1e15,
        "E" => 1e18,
        "Ki" => 1024.0,
        "Mi" => 1024.0 * 1024.0,
        "Gi" => 1024.0 * 1024.0 * 1024.0,
        "Ti" => 1024.0_f64.powi(4),
        "Pi" => 1024.0_f64.powi(5),
        "Ei" => 1024.0_f64.powi(6),
        power => {
            power.trim_start_matches(['e', 'E']).parse::<i32>().map_or(0.0, |power| 10.0_f64.powi(power))
        }
    };
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates, and is never negative
    let bytes = (number * factor) as u64;
    bytes
}

/// Whether packs fit beside what stays when they are stored. Each pack counts once, however many revisions name it.
pub fn fits(ctx: &StoreContext, owner: &Owner, packs: &[PackObject], limit: &Limit) -> Result<(), TooMuch> {
    let named = named_by_shards(ctx, owner);
    let own: BTreeMap<&str, u64> =
        packs.iter().map(|pack| (pack.name.as_str(), pack.bytes.len() as u64)).collect();
    let all = contexts(ctx, owner);
    let good = last_good(&all);
    let stays = all.iter().enumerate().filter(|(at, context)| {
        let revision = context.spec.revision;
        at + 1 < limit.history.max(1) || named.contains(&revision) || good == Some(revision)
    });
    let others: BTreeMap<&str, u64> = stays
        .flat_map(|(_, context)| &context.spec.packs)
        .filter(|pack| !own.contains_key(pack.name.as_str()))
        .map(|pack| (pack.name.as_str(), u64::try_from(pack.bytes).unwrap_or_default()))
        .collect();
    let had: BTreeMap<&str, u64> = all
        .iter()
        .flat_map(|context| &context.spec.packs)
        .map(|pack| (pack.name.as_str(), u64::try_from(pack.bytes).unwrap_or_default()))
        .collect();
    let own: u64 = own.values().sum();
    let bytes = own + others.values().sum::<u64>();
    if bytes > limit.bytes {
        return Err(TooMuch { bytes, own, of: Bound::Owner });
    }
    let Some((most, text)) = &limit.project else { return Ok(()) };
    // What shrinks, or stays as it is, is refused nothing.
    let had = had.values().sum::<u64>();
    let with = |stored: u64| Some(stored.saturating_sub(had) + bytes).filter(|with| *with > stored);
    let stored = &ctx.stores.stored_bytes;
    let installation = ctx.revisions.settings.stored_bytes;
    let beyond = |whole: bool, bytes: u64, of: Bound| {
        stored.waits(&owner.namespace, &owner.name, whole);
        Err(TooMuch { bytes, own, of })
    };
    if let Some(bytes) = with(stored.within(&owner.namespace)).filter(|bytes| bytes > most) {
        return beyond(false, bytes, Bound::Project(text.clone()));
    }
    match with(stored.all()).filter(|bytes| *bytes > installation) {
        Some(bytes) => beyond(true, bytes, Bound::Installation(installation)),
        None => Ok(()),
    }
}

/// Bytes for people.
pub fn mebibytes(bytes: u64) -> String {
    let tenths = (bytes * 10).div_ceil(1024 * 1024);
    format!("{}.{} MiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_bytes_as_kubernetes_reads_them() {
        let of = |text: &str| bytes(&Quantity(IntOrText::Text(text.to_owned())));
        let mebi = 1024 * 1024;
        for (text, wanted) in [
            ("256Mi", 256 * mebi),
            ("1Gi", 1024 * mebi),
            ("1.5Ki", 1536),
            ("3M", 3_000_000),
            ("2e3", 2000),
            ("1E", 1_000_000_000_000_000_000),
            ("500m", 0),
            (".5k", 500),
            ("+7", 7),
        ] {
            assert_eq!(of(text), wanted, "{text}");
        }
        assert_eq!(bytes(&Quantity(IntOrText::Int(9))), 9);
        assert_eq!(mebibytes(256 * mebi), "256.0 MiB");
        assert_eq!(mebibytes(1), "0.1 MiB");
    }
}
