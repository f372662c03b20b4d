//! Publishes one target until stopped: looks at the branch, and writes what differs from what is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use emco_engine::git::commit::{self, Brought};
use emco_engine::git::files;
use emco_engine::git::layout::CLAIM;
use emco_engine::git::next::{Next, Wish, next};
use emco_engine::git::object::{Id, Kind, name_of};
use emco_engine::git::tree::{Edits, Missing, join};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use super::remote::{Fault, Push, Pushed, Remote};
use super::state::{Inner, Seen, Sent, Shared};
use super::{Corrected, Found, Permit, TargetOptions};
use crate::git::packing::{Packed, pack};
use crate::remote::Claim;

mod apart;
mod look;

use apart::{REFUSED, Scope};

/// So long after the last wish nothing more is waited for.
const QUIET: Duration = Duration::from_millis(300);
/// So long after the first wish a commit is made, whatever else comes.
const LONGEST: Duration = Duration::from_secs(2);
/// Commits tried on tips that others moved meanwhile.
const ROUNDS: usize = 5;
/// After the first failure, and at most.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// Publishes a target until stopped.
pub(super) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    stop.run_until_cancelled(work(&shared)).await;
    shared.round.send_modify(|round| {
        let fault = Fault::new("Timeout", "the branch is not published any more");
        round.failed = Some((u64::MAX, fault));
    });
}

async fn work(shared: &Shared) {
    let mut due = Instant::now();
    let mut failures = 0_u32;
    let mut connected: Option<(TargetOptions, Arc<dyn Remote>)> = None;
    loop {
        let options = shared.options();
        if connected.as_ref().is_some_and(|(with, _)| *with != options) {
            connected = None;
        }
        let remote = match &connected {
            Some((_, remote)) => Ok(Arc::clone(remote)),
            None => (shared.parts.connect)(&options),
        };
        let now = Instant::now();
        let looks = shared.take_look() || now >= due;
        let turn = match remote {
            Ok(remote) => {
                connected = Some((options.clone(), Arc::clone(&remote)));
                // After a failure everything waits for the next try.
                let holds = failures > 0 && !looks;
                if holds { Ok(()) } else { Publisher { shared, remote: remote.as_ref() }.turn(looks).await }
            }
            Err(fault) => Err(fault),
        };
        let ended = Instant::now();
        match turn {
            Ok(()) if failures > 0 && !looks => fail(shared),
            Ok(()) => {
                failures = 0;
                if looks {
                    due = ended + options.interval;
                }
            }
            Err(fault) => {
                tracing::warn!(git_target = %shared.key, reason = fault.reason, "{}", fault.message);
                due = ended
                    + BACKOFF.0.saturating_mul(1 << failures.min(10)).min(BACKOFF.1).min(options.interval);
                failures += 1;
                shared.lock().fault = Some(fault);
                fail(shared);
            }
        }
        shared.told();
        let next = if failures > 0 { None } else { next_at(&shared.lock()) };
        tokio::select! {
            () = shared.news.notified() => {}
            () = sleep_until(next.map_or(due, |at| at.min(due))) => {}
        }
    }
}

/// Tells all who wait why the branch has not what they want.
fn fail(shared: &Shared) {
    let (wishes, fault) = {
        let inner = shared.lock();
        (inner.wishes, inner.fault.clone())
    };
    if let Some(fault) = fault {
        shared.round.send_modify(|round| round.failed = Some((wishes, fault)));
    }
}

/// When a commit is due for what is wanted.
fn commits_at(inner: &Inner) -> Option<Instant> {
    let (first, last) = (inner.first?, inner.last?);
    inner.admitted().then(|| (last + QUIET).min(first + LONGEST))
}

/// When there is something to do besides looks.
fn next_at(inner: &Inner) -> Option<Instant> {
    // (What is refused is tried after the rest.)
    let again = || inner.refused.values().map(|refused| refused.again).min().filter(|_| inner.admitted());
    commits_at(inner).or_else(again)
}

struct Publisher<'a> {
    shared: &'a Shared,
    remote: &'a dyn Remote,
}

/// What a commit is made of, taken from what is wanted.
struct Planned {
    /// All wishes up to this one are in it.
    wishes: u64,
    /// Nothing else is due: who waits is told.
    whole: bool,
    touched: BTreeSet<String>,
    undone: Edits,
    brought: BTreeMap<Brought, BTreeSet<String>>,
    first: Option<Instant>,
    /// The claim that it writes.
    claim: Option<String>,
    /// None: the branch is as wanted.
    push: Option<(Push, Sent)>,
}

impl Publisher<'_> {
    /// Looks, if it is time to, and writes, if something is due.
    async fn turn(&self, looks: bool) -> Result<(), Fault> {
        let unseen = self.shared.lock().seen.is_none();
        if looks || unseen {
            self.look().await?;
        }
        let due = {
            let mut inner = self.shared.lock();
            inner.fault = None;
            if let Some(fault) = inner.permit.as_ref().and_then(Permit::refusal) {
                let wishes = inner.wishes;
                drop(inner);
                self.shared.round.send_modify(|round| round.failed = Some((wishes, fault)));
                return Ok(());
            }
            let waits = commits_at(&inner).is_some_and(|at| at > Instant::now());
            inner.admitted() && !waits
        };
        if due { self.publish().await } else { Ok(()) }
    }

    /// Writes what differs, on whatever tip there is; true unless nothing did.
    async fn push(&self, scope: Scope<'_>) -> Result<bool, Fault> {
        let mut blind = false;
        for _ in 0..ROUNDS {
            let planned = self.plan(scope, blind)?;
            let Some((push, sent)) = &planned.push else {
                self.done(&planned, None);
                return Ok(false);
            };
            let before = push.old;
            self.shared.lock().pushed = Some(sent.clone());
            let pushed = match self.shared.parts.fence.grant() {
                None => Err(Fault::new("Timeout", FENCED)),
                Some(time) => timeout(time, self.remote.push(push)).await.unwrap_or_else(|_| {
                    Err(Fault::new("Timeout", "no answer as long as the lease was held"))
                }),
            };
            if pushed == Ok(Pushed::Done) {
                self.done(&planned, Some(sent));
                return Ok(true);
            }
            let (commit, edited) = (sent.commit, sent.clone());
            let looked = self.look().await;
            let now = self.shared.lock().seen.and_then(|seen| seen.commit);
            if looked.is_ok() && now == Some(commit) {
                // It had arrived, and only the answer was lost.
                self.done(&planned, Some(&edited));
                return Ok(true);
            }
            self.give_back(planned);
            looked?;
            match pushed {
                Err(fault) if now == before => return Err(fault),
                Ok(Pushed::Refused(words)) if now == before => {
                    if lacks(&words) && !blind {
                        // What others took away may be lost there, and its content unknown here.
                        blind = true;
                        continue;
                    }
                    let text = format!("the server refuses the push: {words}");
                    return Err(Fault::new(REFUSED, text));
                }
                _ => {}
            }
            if !self.shared.lock().admitted() {
                return Ok(false);
            }
        }
        Err(Fault::new("PushConflict", "others write to the branch again and again: it is tried on"))
    }

    /// Compares, and makes the commit. `blind`: contents that are not known here are not expected there.
    fn plan(&self, scope: Scope<'_>, blind: bool) -> Result<Planned, Fault> {
        let mut guard = self.shared.lock();
        let inner = &mut *guard;
        let Some(seen) = inner.seen else { return Err(Fault::new("Timeout", "the branch was not read yet")) };
        if blind {
            let blobs = &inner.blobs;
            inner.undone.retain(|_, id| id.is_none_or(|id| blobs.contains_key(&id)));
        }
        let part = scope.part(inner);
        let (files, folders, undone) = match &part {
            None => (&inner.files, &inner.touched, &inner.undone),
            Some(part) => (&part.files, &part.touched, &part.undone),
        };
        let wish = Wish { folder: &inner.folder, files, folders, exact: &inner.exact, undone };
        let blob = |text: &str| name_of(seen.format, Kind::Blob, text.as_bytes());
        let Next { mut edits, lists } = next(&inner.trees, seen.root, &wish, blob).map_err(lost)?;
        let claim = self.claim(inner, !edits.is_empty());
        if let Some(text) = &claim {
            edits.insert(join(&inner.folder, CLAIM), Some(blob(text)));
        }
        let brought = scope.brought(inner);
        let push = if edits.is_empty() {
            None
        } else {
            let texts = lists.values().chain(claim.iter());
            Some(self.commit(inner, seen, &edits, texts, &brought)?)
        };
        inner.last = None;
        let (touched, undone) = match part {
            None => (std::mem::take(&mut inner.touched), std::mem::take(&mut inner.undone)),
            Some(part) => part.take(inner),
        };
        Ok(Planned {
            wishes: inner.wishes,
            whole: matches!(scope, Scope::Rest),
            touched,
            undone,
            brought,
            first: inner.first.take(),
            claim,
            push,
        })
    }

    /// The commit of these edits, with what the repository may not have. `texts`: files whose contents nobody keeps.
    fn commit<'t>(
        &self,
        inner: &Inner,
        seen: Seen,
        edits: &Edits,
        texts: impl Iterator<Item = &'t String>,
        brought: &BTreeMap<Brought, BTreeSet<String>>,
    ) -> Result<(Push, Sent), Fault> {
        let format = seen.format;
        let edited = inner.trees.edit(seen.root, edits, format).map_err(lost)?;
        let known = edits.values().flatten().filter_map(|id| inner.blobs.get(id).cloned());
        let texts = texts.map(|text| Packed::new(Kind::Blob, text.as_bytes(), format));
        let trees = edited.made.values().map(|content| Packed::new(Kind::Tree, content, format));
        let objects: BTreeMap<Id, Packed> =
            known.chain(texts).chain(trees).map(|packed| (packed.id, packed)).collect();
        let root = edited.root.unwrap_or_else(|| name_of(format, Kind::Tree, b""));
        let message = commit::message(brought, &self.shared.parts.installation);
        let seconds = self.shared.parts.clock.now_ms() / 1000;
        let content = commit::content(root, seen.commit, seconds, &message);
        let commit = Packed::new(Kind::Commit, &content, format);
        let sent = Sent { commit: commit.id, edited };
        let objects: Vec<Packed> = std::iter::once(commit).chain(objects.into_values()).collect();
        let pack = pack(&objects, format);
        Ok((Push { format, old: seen.commit, new: sent.commit, pack }, sent))
    }

    /// The claim, if the commit is to write it.
    fn claim(&self, inner: &Inner, commits: bool) -> Option<String> {
        let ours = &self.shared.parts.installation;
        let resets = inner.permit == Some(Permit::Reset);
        let (since, seen) = match &inner.found.claim {
            Claim::Held { installation, since, seen } if installation == ours => {
                if !commits && !resets {
                    return None;
                }
                (since.clone(), if resets { inner.mark } else { inner.mark.max(*seen) })
            }
            _ => (self.shared.now().to_string(), inner.mark),
        };
        Some(files::Claim { installation: ours.clone(), since, seen }.text())
    }

    /// The branch has what was planned; `sent`: by this commit.
    fn done(&self, planned: &Planned, sent: Option<&Sent>) {
        let now = self.shared.now();
        let mut guard = self.shared.lock();
        let inner = &mut *guard;
        if let (Some(sent), Some(seen)) = (sent, inner.seen) {
            inner.trees.extend(&sent.edited, seen.format);
            inner.trees.retain(sent.edited.root);
            inner.seen = Some(Seen { commit: Some(sent.commit), root: sent.edited.root, ..seen });
            inner.pushed = None;
            if let Some(text) = &planned.claim {
                inner.found = Found { claim: look::read_claim(text.as_bytes()), files: true };
            }
            if inner.permit == Some(Permit::Reset) {
                inner.permit = Some(Permit::Admitted);
            }
            inner.published = Some((sent.commit.to_string(), now));
        } else if let Some(commit) = inner.seen.and_then(|seen| seen.commit).map(|commit| commit.to_string())
            && inner.published.as_ref().is_none_or(|(before, _)| *before != commit)
        {
            // Others may have committed beside our files: agents tell what they applied by the newest commit.
            inner.published = Some((commit, now));
        }
        let count = u64::try_from(planned.undone.len()).unwrap_or(u64::MAX);
        if let Some(first) = planned.undone.keys().next().filter(|_| sent.is_some() && inner.counts) {
            let before = inner.corrected.take();
            let (sum, first) =
                before.map_or_else(|| (0, first.clone()), |before| (before.count, before.first));
            inner.corrected = Some(Corrected { count: sum + count, first, at: now });
        }
        inner.unclaimed = false;
        inner.forget_what_left();
        drop(guard);
        if planned.whole {
            self.tell(planned.wishes);
        }
    }

    /// Tells all who wait that wishes up to this one are on the branch, but for those of owners whose files are refused.
    fn tell(&self, wishes: u64) {
        let all = self.shared.lock().refused.clone();
        self.shared.round.send_modify(|round| {
            round.done = round.done.max(wishes);
            round.failed = None;
            round.refused = all.into_iter().map(|(owner, refused)| (owner, refused.fault)).collect();
        });
    }

    /// What was planned is still to be done.
    fn give_back(&self, planned: Planned) {
        let Planned { wishes: _, whole: _, touched, undone, brought, first, claim: _, push: _ } = planned;
        let mut inner = self.shared.lock();
        inner.touched.extend(touched);
        for (path, id) in undone {
            inner.undone.insert(path, id);
        }
        for (what, clusters) in brought {
            inner.brought.entry(what).or_default().extend(clusters);
        }
        if let Some(first) = first {
            inner.first = Some(first);
            inner.last.get_or_insert(first);
        }
    }
}

/// Whether a server refuses a push since it has not all that the commit needs.
fn lacks(words: &str) -> bool {
    words.starts_with("unpack") || words.to_lowercase().contains("missing")
}

const FENCED: &str = "this operator does not hold the lease: nothing is written";

fn lost(_: Missing) -> Fault {
    Fault::new("ServerError", "the server did not send all folders of the branch: it is read again")
}
