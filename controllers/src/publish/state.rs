//! Keeps what is wanted of one branch and what is known of it, between the jobs that want and the task that publishes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use emco_engine::git::commit::Brought;
use emco_engine::git::layout::CLUSTERS;
use emco_engine::git::object::{Format, Id, Kind};
use emco_engine::git::tree::{Edited, Edits, Entry, Missing, Trees, join};
use k8s_openapi::jiff::Timestamp;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use super::branch::folder_of;
use super::remote::Fault;
use super::{Corrected, Found, Permit, PublishState, PublisherParts, TargetKey, TargetOptions, TargetStatus};
use crate::git::packing::Packed;

/// After a refusal, before a change of what was refused is tried.
const SOON: Duration = Duration::from_secs(10);

/// What jobs handed over, and what became of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Round {
    /// All wishes up to this one are on the branch.
    pub done: u64,
    /// Wishes up to this one were tried, and why they are not there.
    pub failed: Option<(u64, Fault)>,
    /// Owners whose files the server refuses, while it takes those of others.
    pub refused: BTreeMap<String, Fault>,
}

/// The branch as it was last seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub format: Format,
    pub commit: Option<Id>,
    pub root: Option<Id>,
}

/// A commit that was sent.
#[derive(Clone, Debug)]
pub(super) struct Sent {
    pub commit: Id,
    pub edited: Edited,
}

/// An owner whose files the server refuses, while it takes those of others.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    pub fault: Fault,
    /// How often that was so, and when it was last.
    pub times: u32,
    pub tried: Instant,
    /// When they are tried again.
    pub again: Instant,
}

/// What is wanted and what is known.
#[derive(Default)]
pub(super) struct Inner {
    /// The folder of the target.
    pub folder: String,
    pub seen: Option<Seen>,
    pub trees: Trees,
    pub found: Found,
    pub permit: Option<Permit>,
    /// Files by path below the folder; `None`: it is to leave.
    pub files: Edits,
    /// What the files are of, as jobs name it.
    pub tokens: BTreeMap<String, String>,
    /// Contents of what is wanted.
    pub blobs: BTreeMap<Id, Packed>,
    /// Folders that were spoken of since the last commit.
    pub touched: BTreeSet<String>,
    /// Folders of which all is known.
    pub exact: BTreeSet<String>,
    /// What others changed, as it was before.
    pub undone: Edits,
    /// The claim was not compared with the branch since the folder was admitted.
    pub unclaimed: bool,
    /// It was others that changed it.
    pub counts: bool,
    /// The last commit of which no answer said what became of it.
    pub pushed: Option<Sent>,
    /// What the next commit is about.
    pub brought: BTreeMap<Brought, BTreeSet<String>>,
    /// Number of the last wish, and since when it waits.
    pub wishes: u64,
    pub first: Option<Instant>,
    pub last: Option<Instant>,
    /// How far the hub's store had come.
    pub mark: u64,
    /// Why the branch cannot be read or written.
    pub fault: Option<Fault>,
    pub published: Option<(String, Timestamp)>,
    pub corrected: Option<Corrected>,
    /// Owners of files in folders for agents, whose paths do not tell it.
    pub owners: BTreeMap<String, String>,
    pub refused: BTreeMap<String, Refused>,
    /// The owner that was found last to be one of them.
    pub last_refused: String,
    told: Option<TargetStatus>,
}

/// One target.
pub(super) struct Shared {
    pub key: TargetKey,
    /// No other publisher of this process has it.
    pub number: u64,
    pub parts: PublisherParts,
    pub round: watch::Sender<Round>,
    /// Something is wanted, or was judged.
    pub news: Notify,
    look: AtomicBool,
    options: Mutex<TargetOptions>,
    inner: Mutex<Inner>,
    tell: Box<dyn Fn() + Send + Sync>,
}

impl Shared {
    pub fn new(
        key: &TargetKey,
        number: u64,
        options: TargetOptions,
        parts: PublisherParts,
        tell: Box<dyn Fn() + Send + Sync>,
    ) -> Self {
        let inner = Inner { folder: options.folder.clone(), ..Inner::default() };
        Self {
            key: key.clone(),
            number,
            parts,
            round: watch::channel(Round::default()).0,
            news: Notify::new(),
            look: AtomicBool::new(false),
            options: Mutex::new(options),
            inner: Mutex::new(inner),
            tell,
        }
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    pub fn options(&self) -> TargetOptions {
        self.options.lock().clone()
    }

    /// Takes another login and interval; false where the options are of other files.
    pub fn change(&self, options: &TargetOptions) -> bool {
        let TargetOptions { url, branch, folder, login: _, interval: _, edge } = options;
        let mut now = self.options.lock();
        let same = now.url == *url && now.branch == *branch && now.folder == *folder && now.edge == *edge;
        if same && *now != *options {
            now.clone_from(options);
            self.look_now();
        }
        same
    }

    pub fn look_now(&self) {
        self.look.store(true, Ordering::Release);
        self.news.notify_one();
    }

    /// Whether a look was asked for since the last time.
    pub fn take_look(&self) -> bool {
        self.look.swap(false, Ordering::AcqRel)
    }

    pub fn admit(&self, found: &Found, permit: Permit) {
        let mut inner = self.lock();
        if inner.found == *found && inner.permit.as_ref() != Some(&permit) {
            inner.permit = Some(permit);
            if inner.admitted() {
                // Others may have written meanwhile: all that is wanted is compared.
                inner.unclaimed = true;
                let all: BTreeSet<String> =
                    inner.files.keys().map(|path| folder_of(path).to_owned()).collect();
                inner.touched.extend(all);
            }
            drop(inner);
            self.news.notify_one();
            self.told();
        }
    }

    pub fn take_corrected(&self) -> Option<Corrected> {
        self.lock().corrected.take()
    }

    pub fn status(&self) -> TargetStatus {
        self.lock().status()
    }

    /// Tells who listens if the status became another.
    pub fn told(&self) {
        let mut inner = self.lock();
        let now = inner.status();
        if inner.told.as_ref() != Some(&now) || inner.corrected.is_some() {
            inner.told = Some(now);
            drop(inner);
            (self.tell)();
        }
    }

    pub fn now(&self) -> Timestamp {
        Timestamp::from_second(self.parts.clock.now_ms() / 1000).unwrap_or_default()
    }
}

impl Inner {
    /// Whether the folder may be written.
    pub fn admitted(&self) -> bool {
        matches!(self.permit, Some(Permit::Admitted | Permit::Reset))
    }

    /// Keeps a content, and names it.
    pub fn keep(&mut self, text: &str, format: Format) -> Id {
        let packed = Packed::new(Kind::Blob, text.as_bytes(), format);
        let id = packed.id;
        self.blobs.entry(id).or_insert(packed);
        id
    }

    /// Notes a wish, and answers its number.
    pub fn wish(&mut self) -> u64 {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.wishes += 1;
        self.wishes
    }

    /// Whose a file is, such as `team-a/dig-shop`; empty where nobody spoke of it.
    pub fn owner_of<'a>(&'a self, path: &'a str) -> &'a str {
        // clusters, provider, cluster, namespace, owner
        let mut slashes = path.match_indices('/').map(|(at, _)| at).skip(2);
        match (slashes.next(), slashes.nth(1)) {
            (Some(start), Some(end)) => path.get(start + 1..end).unwrap_or_default(),
            _ => self.owners.get(path).map_or("", String::as_str),
        }
    }

    /// What an owner wants is another than before: where it was refused, it may be taken now.
    pub fn wants_anew(&mut self, owner: &str) {
        if let Some(refused) = self.refused.get_mut(owner) {
            refused.again = refused.again.min(refused.tried + SOON);
        }
    }

    /// Forgets what left the branch, and contents that nothing wants.
    pub fn forget_what_left(&mut self) {
        let left = |path: &str| !self.touched.contains(folder_of(path)) && self.at(path).is_none();
        let gone: Vec<String> = self
            .files
            .iter()
            .filter(|(path, id)| id.is_none() && left(path))
            .map(|(path, _)| path.clone())
            .collect();
        for path in gone {
            self.files.remove(&path);
            self.owners.remove(&path);
        }
        let used: BTreeSet<Id> = self.files.values().flatten().copied().collect();
        self.blobs.retain(|id, _| used.contains(id));
    }

    /// Forgets all names of objects: the repository gives them in another way now.
    pub fn forget_names(&mut self) {
        self.files.clear();
        self.tokens.clear();
        self.blobs.clear();
        self.undone.clear();
        // Nothing is known of any folder until all of its files were handed over again.
        self.exact.clear();
    }

    /// Clusters that have files on the branch.
    fn clusters(&self) -> Result<usize, Missing> {
        let root = self.seen.and_then(|seen| seen.root);
        let providers = self.trees.folder(root, &join(&self.folder, CLUSTERS))?;
        let mut count = 0;
        for (_, provider) in providers.into_iter().flatten().filter(|(_, one)| one.is_folder()) {
            count += self.trees.entries(provider.id)?.len();
        }
        Ok(count)
    }

    /// What the branch has at a path below the folder.
    pub fn at(&self, path: &str) -> Option<Entry> {
        let root = self.seen.and_then(|seen| seen.root);
        let entry = self.trees.at(root, &join(&self.folder, path)).ok().flatten();
        entry.filter(|entry| !entry.is_folder())
    }

    /// Whether the branch has this content at a path below the folder.
    pub fn has(&self, path: &str, id: Id) -> bool {
        self.at(path).is_some_and(|entry| entry.is_file_of(id))
    }

    pub fn status(&self) -> TargetStatus {
        let refusal = self.permit.as_ref().and_then(Permit::refusal);
        let state = match self.fault.clone().or(refusal) {
            Some(Fault { reason, message }) => PublishState::Failed { reason, message },
            None if self.seen.is_none() => PublishState::Connecting,
            None if self.permit.is_none() => PublishState::Waiting,
            None if self.unclaimed || self.first.is_some() || !self.undone.is_empty() => {
                PublishState::Publishing
            }
            None => PublishState::Published,
        };
        let cluster = |path: &String| path.splitn(4, '/').take(3).collect::<Vec<_>>().join("/");
        let waiting: BTreeSet<String> =
            self.touched.iter().filter(|_| self.first.is_some()).map(cluster).collect();
        TargetStatus {
            state,
            found: self.found.clone(),
            published: self.published.clone(),
            clusters: self.clusters().unwrap_or_default(),
            waiting: waiting.len(),
            admitted: self.admitted(),
            refused: self.refused.keys().cloned().collect(),
        }
    }
}
