//! A repository in memory with faults, and publishers over it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use emco_engine::git::commit;
use emco_engine::git::files::EdgeObjects;
use emco_engine::git::object::{Format, Id, Kind, name_of, tree_of};
use emco_engine::git::tree::{Edits, Trees};
use emco_engine::identity::ClusterId;
use futures::StreamExt;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::remote::{Fault, Push, Pushed, Remote, Snapshot, Tip};
use super::{
    Login, OnGit, Permit, PublishState, PublisherParts, Publishers, TargetKey, TargetOptions, TargetStatus,
};
use crate::api::fence::Fence;
use crate::api::world::Clock;
use crate::git::GitLimits;
use crate::git::pack::Pack;
use crate::remote::Claim;

const SHA1: Format = Format::Sha1;

/// Something that goes wrong with one push.
pub enum Trick {
    /// The server's hook says no.
    Refuse(&'static str),
    /// The same, after a while.
    RefuseLater(&'static str),
    /// It arrives, and the answer is lost.
    LoseAnswer,
    /// It does not arrive.
    LosePush,
    /// Somebody else commits just before it.
    Between(Vec<(&'static str, Option<&'static str>)>),
    /// It arrives, somebody else commits on top of it, and the answer is lost.
    LoseAnswerAndFollow(Vec<(&'static str, Option<&'static str>)>),
}

#[derive(Default)]
struct Repository {
    objects: BTreeMap<Id, (Kind, Vec<u8>)>,
    trees: Trees,
    tip: Option<Id>,
    /// The repository has another branch.
    others: bool,
}

/// A repository.
#[derive(Default)]
pub struct MemoryRemote {
    repository: Mutex<Repository>,
    pub tricks: Mutex<VecDeque<Trick>>,
    /// The server's hook refuses files with this word.
    pub refuses: Mutex<Option<&'static str>>,
    /// Nothing is answered but this.
    pub down: Mutex<Option<Fault>>,
    pub requests: AtomicU64,
    pub pushes: AtomicU64,
    /// Bytes of the last push.
    pub bytes: AtomicU64,
}

impl Repository {
    fn insert(&mut self, kind: Kind, content: &[u8]) -> Id {
        let id = name_of(SHA1, kind, content);
        self.objects.insert(id, (kind, content.to_vec()));
        if kind == Kind::Tree {
            assert!(self.trees.insert(id, content, SHA1));
        }
        id
    }

    fn root(&self, commit: Option<Id>) -> Option<Id> {
        tree_of(&self.objects[&commit?].1, SHA1)
    }

    fn commit(&mut self, edits: &[(&str, Option<&str>)]) {
        let edits: Edits = edits
            .iter()
            .map(|(path, text)| {
                let id = text.map(|text| self.insert(Kind::Blob, text.as_bytes()));
                ((*path).to_owned(), id)
            })
            .collect();
        let edited = self.trees.edit(self.root(self.tip), &edits, SHA1).unwrap();
        for content in edited.made.values() {
            self.insert(Kind::Tree, content);
        }
        let root = edited.root.unwrap_or_else(|| self.insert(Kind::Tree, b""));
        let content = commit::content(root, self.tip, 7, "by somebody else\n");
        self.tip = Some(self.insert(Kind::Commit, &content));
    }

    /// Whether everything is there that a commit needs.
    fn is_whole(&self, root: Id) -> bool {
        let Ok(files) = self.trees.files(Some(root)) else { return false };
        files.values().all(|id| self.objects.contains_key(id))
    }
}

impl MemoryRemote {
    /// Somebody else commits.
    pub fn others(&self, edits: &[(&str, Option<&str>)]) {
        self.repository.lock().commit(edits);
    }

    /// The files of the branch.
    pub fn files(&self) -> BTreeMap<String, String> {
        let repository = self.repository.lock();
        let files = repository.trees.files(repository.root(repository.tip)).unwrap();
        let text = |id: &Id| String::from_utf8(repository.objects[id].1.clone()).unwrap();
        files.iter().map(|(path, id)| (path.clone(), text(id))).collect()
    }

    pub fn tip_now(&self) -> Option<Id> {
        self.repository.lock().tip
    }

    /// The branch is moved to another commit by force.
    pub fn rewind(&self, to: Option<Id>) {
        self.repository.lock().tip = to;
    }

    /// Another repository stands under the address.
    pub fn replace(&self) {
        *self.repository.lock() = Repository::default();
    }

    /// The branch is not there, and another one is.
    pub fn lose_branch(&self) {
        let mut repository = self.repository.lock();
        (repository.tip, repository.others) = (None, true);
    }

    /// The message of the last commit.
    pub fn message(&self) -> String {
        let repository = self.repository.lock();
        String::from_utf8(repository.objects[&repository.tip.unwrap()].1.clone()).unwrap()
    }

    fn answers(&self) -> Result<(), Fault> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.down.lock().clone().map_or(Ok(()), Err)
    }

    fn take(&self, push: &Push) -> Pushed {
        let mut repository = self.repository.lock();
        if repository.tip != push.old {
            return Pushed::Refused("failed to update ref".to_owned());
        }
        let pack = Pack::read(push.pack.clone(), SHA1, &GitLimits::default()).unwrap();
        let objects = pack.all();
        let word = *self.refuses.lock();
        let has = |content: &[u8], word: &str| String::from_utf8_lossy(content).contains(word);
        let is_refused = |content: &[u8]| word.is_some_and(|word| has(content, word));
        if objects.values().any(|(kind, content)| *kind == Kind::Blob && is_refused(content)) {
            return Pushed::Refused("pre-receive hook declined".to_owned());
        }
        for (kind, content) in objects.into_values() {
            repository.insert(kind, &content);
        }
        if !repository.root(Some(push.new)).is_some_and(|root| repository.is_whole(root)) {
            return Pushed::Refused("missing necessary objects".to_owned());
        }
        repository.tip = Some(push.new);
        self.pushes.fetch_add(1, Ordering::Relaxed);
        self.bytes.store(push.pack.len() as u64, Ordering::Relaxed);
        Pushed::Done
    }
}

#[async_trait]
impl Remote for MemoryRemote {
    async fn tip(&self) -> Result<Tip, Fault> {
        self.answers()?;
        let repository = self.repository.lock();
        let empty = repository.tip.is_none() && !repository.others;
        Ok(Tip { format: SHA1, commit: repository.tip, empty })
    }

    async fn snapshot(&self, id: Id) -> Result<Snapshot, Fault> {
        self.answers()?;
        let repository = self.repository.lock();
        let commit = repository.objects[&id].1.clone();
        let trees = repository.objects.iter().filter(|(_, (kind, _))| *kind == Kind::Tree);
        let trees = trees.map(|(id, (_, content))| (*id, content.clone())).collect();
        Ok(Snapshot { commit, trees })
    }

    async fn blob(&self, id: Id) -> Result<Vec<u8>, Fault> {
        self.answers()?;
        Ok(self.repository.lock().objects[&id].1.clone())
    }

    async fn push(&self, push: &Push) -> Result<Pushed, Fault> {
        self.answers()?;
        let lost = || Err(Fault::new("Timeout", "no answer"));
        let trick = self.tricks.lock().pop_front();
        match trick {
            None => Ok(self.take(push)),
            Some(Trick::Refuse(words)) => Ok(Pushed::Refused(words.to_owned())),
            Some(Trick::RefuseLater(words)) => {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Ok(Pushed::Refused(words.to_owned()))
            }
            Some(Trick::LosePush) => lost(),
            Some(Trick::LoseAnswer) => {
                self.take(push);
                lost()
            }
            Some(Trick::Between(edits)) => {
                self.others(&edits);
                Ok(self.take(push))
            }
            Some(Trick::LoseAnswerAndFollow(edits)) => {
                self.take(push);
                self.others(&edits);
                lost()
            }
        }
    }
}

struct Always;
impl Fence for Always {
    fn may_write(&self) -> bool {
        true
    }
}

struct Fixed;
impl Clock for Fixed {
    fn now_ms(&self) -> i64 {
        1_795_000_000_000
    }
}

/// The target of tests.
pub fn key() -> TargetKey {
    TargetKey { namespace: "acme".to_owned(), name: "fleet".to_owned() }
}

/// Publishers over a repository, with clusters `acme/a` and `acme/b` on it. Folders are judged as the operator judges them: nobody
/// confirms anything.
pub fn publishers(remote: &Arc<MemoryRemote>, stop: &CancellationToken) -> Arc<Publishers> {
    let connected = Arc::clone(remote);
    let connect = move |_: &TargetOptions| Ok::<_, Fault>(Arc::clone(&connected) as Arc<dyn Remote>);
    let parts = PublisherParts {
        connect: Arc::new(connect),
        fence: Arc::new(Always),
        clock: Arc::new(Fixed),
        installation: "inst".to_owned(),
    };
    let publishers = Publishers::new(parts, stop);
    let (judged, mut changes) = (Arc::clone(&publishers), publishers.changes());
    let ended = stop.clone();
    tokio::spawn(async move {
        while let Some(Some(key)) = ended.run_until_cancelled(changes.next()).await {
            let Some(status) = judged.status(&key) else { continue };
            if let Some(permit) = judge(&status) {
                judged.admit(&key, &status.found, permit);
            }
        }
    });
    publishers.set_target(
        &key(),
        TargetOptions {
            url: "https://git.example.com/acme/fleet.git".to_owned(),
            branch: "main".to_owned(),
            folder: String::new(),
            login: Login::default(),
            interval: Duration::from_mins(1),
            edge: EdgeObjects { namespace: "flux-system".to_owned(), interval: "1m".to_owned() },
        },
    );
    for name in ["a", "b"] {
        publishers.set_cluster(&ClusterId::new("acme", name), OnGit { target: key() });
    }
    publishers
}

fn judge(status: &TargetStatus) -> Option<Permit> {
    if status.state != PublishState::Waiting {
        return None;
    }
    let refused = |reason, message: &str| Permit::Refused { reason, message: message.to_owned() };
    Some(match (&status.found.claim, status.found.files) {
        (Claim::Held { installation, .. }, _) if installation == "inst" => Permit::Admitted,
        (Claim::Held { .. }, _) => refused("ClaimedByAnotherHub", "another hub has it"),
        (_, true) => refused("FolderNotOurs", "files of others are there"),
        (_, false) => Permit::Admitted,
    })
}
