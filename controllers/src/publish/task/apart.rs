//! Finds out whose files a server refuses, once it refused a push of several owners: what one of them has holds up no other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use emco_crds::OwnerKind;
use emco_engine::git::commit::Brought;
use emco_engine::git::layout;
use emco_engine::git::object::Id;
use emco_engine::git::tree::{Edits, join};
use tokio::time::Instant;

use super::super::remote::Fault;
use super::super::state::{Inner, Refused};
use super::Publisher;

/// Reason of a push that the server refuses.
pub(super) const REFUSED: &str = "PushRefused";
/// Owners that are found, or tried again, in one turn: others wait meanwhile.
const MOST: usize = 4;
/// Until what is refused is tried again by itself, the first time; it doubles so often at most.
const AGAIN: (Duration, u32) = (Duration::from_secs(30), 4);

/// Whose files a commit has.
#[derive(Clone, Copy)]
pub(super) enum Scope<'a> {
    /// Those of all whose files the server does not refuse.
    Rest,
    /// Those of these owners.
    Of(&'a BTreeSet<String>),
}

/// What is wanted, as far as it is of a scope.
#[derive(Default)]
pub(super) struct Part {
    pub files: Edits,
    pub touched: BTreeSet<String>,
    pub undone: Edits,
}

impl Scope<'_> {
    /// Whether what is wanted of an owner is in it.
    fn takes(self, inner: &Inner, owner: &str) -> bool {
        match self {
            Self::Rest => !inner.refused.contains_key(owner),
            Self::Of(some) => some.contains(owner),
        }
    }

    /// Whether all that is wanted is in it.
    fn is_all(self, inner: &Inner) -> bool {
        matches!(self, Self::Rest) && inner.refused.is_empty()
    }

    /// Its part of what is wanted; none where it is all of it.
    pub(super) fn part(self, inner: &Inner) -> Option<Part> {
        if self.is_all(inner) {
            return None;
        }
        let takes = |path: &str| self.takes(inner, inner.owner_of(path));
        let mut part = Part::default();
        for folder in &inner.touched {
            let wanted = wanted(inner, folder).filter(|(path, _)| takes(path));
            part.files.extend(wanted.map(|(path, id)| (path.clone(), *id)));
            if is_shared(folder) || takes(&join(folder, layout::LIST)) {
                part.touched.insert(folder.clone());
            }
        }
        let undone = inner.undone.iter().filter(|(path, _)| takes(path));
        part.undone.extend(undone.map(|(path, id)| (path.clone(), *id)));
        Some(part)
    }

    /// Takes out what a commit of it is about.
    pub(super) fn brought(self, inner: &mut Inner) -> BTreeMap<Brought, BTreeSet<String>> {
        let all = std::mem::take(&mut inner.brought);
        if self.is_all(inner) {
            return all;
        }
        let takes = |(one, _): &(Brought, BTreeSet<String>)| self.takes(inner, &key(one));
        let (brought, left) = all.into_iter().partition(takes);
        inner.brought = left;
        brought
    }
}

impl Part {
    /// Takes it out of what is wanted. A folder for the agent stays, for it has files of others.
    pub(super) fn take(self, inner: &mut Inner) -> (BTreeSet<String>, Edits) {
        inner.touched.retain(|folder| is_shared(folder) || !self.touched.contains(folder));
        inner.undone.retain(|path, _| !self.undone.contains_key(path));
        (self.touched, self.undone)
    }
}

impl Publisher<'_> {
    /// Publishes what is due. What is refused of some owners comes last, and not each time.
    pub(super) async fn publish(&self) -> Result<(), Fault> {
        let (mut taken, mut found, mut last) = (false, Vec::new(), None);
        for _ in 0..MOST {
            match self.push(Scope::Rest).await {
                Ok(pushed) if pushed || taken || found.is_empty() => return self.again().await,
                Ok(_) => break,
                Err(fault) if fault.reason == REFUSED => last = Some(fault),
                Err(fault) => return Err(fault),
            }
            let owners = self.suspects();
            if owners.len() < 2 && !taken {
                break;
            }
            if let Some((owner, fault)) = self.find(owners, &mut taken).await? {
                self.remember(&owner, &fault);
                found.push(owner);
            }
        }
        if !taken {
            // It is not the files: nothing is taken.
            self.shared.lock().refused.retain(|owner, _| !found.contains(owner));
        }
        last.map_or(Ok(()), Err)
    }

    /// Owners that have something to be published. Others come first than those that were found last.
    fn suspects(&self) -> Vec<String> {
        let inner = self.shared.lock();
        let (later, first): (Vec<_>, Vec<_>) =
            due(&inner).into_iter().partition(|owner| *owner <= inner.last_refused);
        [first, later].concat()
    }

    /// Publishes halves of what is refused, until one owner is left whose files are. `taken`: something was published.
    async fn find(
        &self,
        mut owners: Vec<String>,
        taken: &mut bool,
    ) -> Result<Option<(String, Fault)>, Fault> {
        while !owners.is_empty() {
            let half = owners.len().div_ceil(2);
            let mut half: BTreeSet<String> = owners.iter().take(half).cloned().collect();
            match self.push(Scope::Of(&half)).await {
                Ok(pushed) => {
                    *taken |= pushed;
                    owners.retain(|owner| !half.contains(owner));
                }
                Err(fault) if fault.reason == REFUSED => {
                    if half.len() == 1 {
                        return Ok(half.pop_first().map(|owner| (owner, fault)));
                    }
                    owners.retain(|owner| half.contains(owner));
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(None)
    }

    /// Tries again what was refused, where it is time to.
    async fn again(&self) -> Result<(), Fault> {
        let now = Instant::now();
        let due: Vec<String> = {
            let inner = self.shared.lock();
            let due = inner.refused.iter().filter(|(_, refused)| refused.again <= now);
            due.map(|(owner, _)| owner.clone()).take(MOST).collect()
        };
        for owner in due {
            let alone = BTreeSet::from([owner.clone()]);
            match self.push(Scope::Of(&alone)).await {
                Ok(_) => drop(self.shared.lock().refused.remove(&owner)),
                Err(fault) if fault.reason == REFUSED => self.remember(&owner, &fault),
                Err(fault) => return Err(fault),
            }
            self.tell(0);
        }
        Ok(())
    }

    /// The server refuses the files of this owner.
    fn remember(&self, owner: &str, fault: &Fault) {
        tracing::warn!(git_target = %self.shared.key, owner, "{}", fault.message);
        let message = format!("{}; of {owner} alone, others are published", fault.message);
        let now = Instant::now();
        let mut inner = self.shared.lock();
        let times = inner.refused.get(owner).map_or(0, |before| before.times + 1);
        let again = now + AGAIN.0 * (1 << times.min(AGAIN.1));
        let refused = Refused { fault: Fault { message, ..fault.clone() }, times, tried: now, again };
        inner.refused.insert(owner.to_owned(), refused);
        owner.clone_into(&mut inner.last_refused);
    }
}

/// Owners that have something to be published.
fn due(inner: &Inner) -> BTreeSet<String> {
    let differs = |path: &str, id: Option<_>| match id {
        Some(id) => !inner.has(path, id),
        None => inner.at(path).is_some(),
    };
    let folders = inner.touched.iter().filter(|folder| !is_shared(folder));
    let by_folder = folders.map(|folder| inner.owner_of(&join(folder, layout::LIST)).to_owned());
    let shared = inner.touched.iter().filter(|folder| is_shared(folder));
    let by_file = shared.flat_map(|folder| wanted(inner, folder).filter(|(path, id)| differs(path, **id)));
    let by_file = by_file.map(|(path, _)| inner.owner_of(path).to_owned());
    let undone = inner.undone.keys().map(|path| inner.owner_of(path).to_owned());
    let all = by_folder.chain(by_file).chain(undone);
    all.filter(|owner| !inner.refused.contains_key(owner)).collect()
}

/// Wanted files of a folder, and of those below it.
fn wanted<'a>(
    inner: &'a Inner,
    folder: &str,
) -> impl Iterator<Item = (&'a String, &'a Option<Id>)> + use<'a> {
    let start = format!("{folder}/");
    inner.files.range(start.clone()..).take_while(move |(path, _)| path.starts_with(&start))
}

/// Whether a folder is that of a cluster's agent: clusters, provider, cluster, sync.
fn is_shared(folder: &str) -> bool {
    folder.split('/').count() == 4 && folder.ends_with("/sync")
}

/// The owner of a line in a commit's message.
fn key(brought: &Brought) -> String {
    let mut parts = brought.owner.splitn(3, '/');
    let mut next = || parts.next().unwrap_or_default();
    let (kind, namespace, name) = (next(), next(), next());
    layout::owner(&OwnerKind::from(kind), namespace, name)
}
