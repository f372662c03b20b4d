//! Hands files of one cluster over to the publisher of its branch, and waits until they are there.

use std::collections::BTreeSet;
use std::sync::Arc;

use emco_crds::OwnerKind;
use emco_engine::cloud;
use emco_engine::git::commit::Brought;
use emco_engine::git::files::{self, Applier, OwnerText};
use emco_engine::git::layout;
use emco_engine::git::object::Id;
use emco_engine::git::tree::join;
use emco_engine::identity::{ClusterId, Identity};
use emco_engine::marks::owner_hash;

use super::remote::Fault;
use super::state::{Inner, Shared};
use super::{Permit, TargetKey};

/// Revisions of owners that the message of one commit counts.
const MOST_BROUGHT: usize = 10_000;

/// The branch as one cluster's jobs see it.
#[derive(Clone)]
pub struct Branch {
    key: TargetKey,
    /// None: the target was not set yet.
    shared: Option<Arc<Shared>>,
    cluster: ClusterId,
    /// The folder of the cluster, below that of the target.
    folder: String,
}

/// Why nothing can be handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotReady {
    /// The branch was not read yet, or whose it is was not judged.
    Awaited,
    Failed(Fault),
}

/// A file of an object.
#[derive(Clone, Copy)]
pub struct File<'a> {
    pub owner: &'a OwnerText,
    pub app: &'a str,
    pub id: &'a Identity,
    /// What the object's annotation says: equal ones have equal files.
    pub token: &'a str,
    /// `system:serviceaccount:...` that it is applied as.
    pub account: Option<&'a str>,
    pub revision: i64,
    /// Other apps of the owner may have it, too: a definition of a `crds` folder, or an object of a hook.
    pub shared: bool,
}

impl Branch {
    pub(super) fn new(key: TargetKey, shared: Option<Arc<Shared>>, cluster: &ClusterId) -> Self {
        Self { key, shared, cluster: cluster.clone(), folder: layout::cluster(cluster) }
    }

    /// Whether files can be handed over now.
    pub fn ready(&self) -> Result<(), NotReady> {
        let Some(shared) = &self.shared else { return Err(NotReady::Awaited) };
        let inner = shared.lock();
        let fault = inner.fault.clone().filter(|_| inner.seen.is_none());
        let failed = inner.permit.as_ref().and_then(Permit::refusal).or(fault);
        match failed {
            Some(fault) => Err(NotReady::Failed(self.named(&fault))),
            None if inner.seen.is_some() && inner.admitted() => Ok(()),
            None => Err(NotReady::Awaited),
        }
    }

    /// Another number is another publisher, which nothing was handed over to.
    pub fn publisher(&self) -> u64 {
        self.shared.as_ref().map_or(0, |shared| shared.number)
    }

    fn named(&self, fault: &Fault) -> Fault {
        Fault::new(fault.reason, format!("GitTarget {}: {}: {}", self.key, fault.reason, fault.message))
    }

    /// Work at this version of the hub's begins.
    pub fn working(&self, version: u64) {
        if let Some(shared) = &self.shared {
            let mut inner = shared.lock();
            inner.mark = inner.mark.max(version);
        }
    }

    /// Whether the branch has the file of an object so.
    pub fn has(&self, owner: &OwnerText, app: &str, id: &Identity, token: &str) -> bool {
        let Some(shared) = &self.shared else { return false };
        let path = self.path(owner, app, id);
        let inner = shared.lock();
        let known = inner.tokens.get(&path).is_some_and(|known| known == token);
        known && inner.files.get(&path).is_some_and(|id| id.is_some_and(|id| inner.has(&path, id)))
    }

    /// Whether a file stands in the folder for the agent. (Apps, too, may be called `sync`.)
    fn is_in_sync(&self, path: &str) -> bool {
        folder_of(path) == join(&self.folder, layout::SYNC)
    }

    /// Notes whose a file is that stands in the folder for the agent, where files of all owners are.
    fn notes(&self, inner: &mut Inner, owner: &OwnerText, path: &str) {
        if self.is_in_sync(path) {
            inner.owners.insert(path.to_owned(), key(owner));
        }
    }

    fn path(&self, owner: &OwnerText, app: &str, id: &Identity) -> String {
        let folder = layout::app(&owner.kind, &owner.namespace, &owner.name, app);
        join(&self.folder, &layout::object(&owner.kind, &folder, id))
    }

    /// Wants a file, whose text is made if it has to be. Answers what [`Self::settled`] waits for.
    pub fn put(&self, file: &File<'_>, text: impl FnOnce() -> String) -> Result<u64, NotReady> {
        self.ready()?;
        let Some(shared) = &self.shared else { return Err(NotReady::Awaited) };
        let options = shared.options();
        let File { owner, app, id, token, account, revision, shared: of_several } = *file;
        let path = self.path(owner, app, id);
        let mut guard = shared.lock();
        let inner = &mut *guard;
        let Some(format) = inner.seen.map(|seen| seen.format) else { return Err(NotReady::Awaited) };
        let known = inner.tokens.get(&path).is_some_and(|known| known == token);
        let wanted = match inner.files.get(&path) {
            Some(Some(wanted)) if known => *wanted,
            _ => {
                if !of_several {
                    self.leave_others(inner, owner, app, id);
                }
                self.notes(inner, owner, &path);
                inner.wants_anew(&key(owner));
                inner.keep(&text(), format)
            }
        };
        inner.tokens.insert(path.clone(), token.to_owned());
        let mut there = want(inner, &path, wanted);
        let agent = join(&self.folder, &layout::agent_file(&owner.hash, app));
        // (A namespace of a logical cloud stands among the objects for the agent, and has no folder.)
        let has_folder = !self.is_in_sync(&path);
        if has_folder && !inner.files.get(&agent).is_some_and(Option::is_some) {
            let folder = layout::app(&owner.kind, &owner.namespace, &owner.name, app);
            let folder = join(&join(&options.folder, &self.folder), &folder);
            let applier = applier(&shared.parts.installation, owner, account);
            let text = files::flux(owner, app, &folder, &applier, &options.edge);
            let wanted = inner.keep(&text, format);
            self.notes(inner, owner, &agent);
            there &= want(inner, &agent, wanted);
        }
        if there {
            return Ok(0);
        }
        self.brings(inner, owner, revision);
        let wish = inner.wish();
        drop(guard);
        shared.news.notify_one();
        Ok(wish)
    }

    /// An object that another app of its owner had is that one's no more.
    fn leave_others(&self, inner: &mut Inner, owner: &OwnerText, app: &str, id: &Identity) {
        for other in self.apps(inner, owner).iter().filter(|other| *other != app) {
            if leave(inner, &self.path(owner, other, id)) {
                self.leave_empty(inner, owner, other);
            }
        }
    }

    /// Takes the object for the agent off where an app has no files any more.
    fn leave_empty(&self, inner: &mut Inner, owner: &OwnerText, app: &str) {
        let folder = layout::app(&owner.kind, &owner.namespace, &owner.name, app);
        if is_empty(inner, &join(&self.folder, &folder)) {
            let agent = join(&self.folder, &layout::agent_file(&owner.hash, app));
            self.notes(inner, owner, &agent);
            leave(inner, &agent);
        }
    }

    /// Wants files of an owner taken off, wherever it has them. Answers what [`Self::settled`] waits for.
    pub fn take_off<'a>(
        &self,
        owner: &OwnerText,
        ids: impl IntoIterator<Item = &'a Identity>,
        revision: i64,
    ) -> Result<u64, NotReady> {
        self.ready()?;
        let Some(shared) = &self.shared else { return Err(NotReady::Awaited) };
        let mut guard = shared.lock();
        let inner = &mut *guard;
        let apps = self.apps(inner, owner);
        let mut gone = false;
        let mut left = BTreeSet::new();
        for id in ids {
            for app in &apps {
                let path = self.path(owner, app, id);
                let wanted = inner.files.get(&path).is_some_and(Option::is_some);
                if leave(inner, &path) {
                    gone = true;
                    left.insert(app.clone());
                    self.notes(inner, owner, &path);
                    if wanted {
                        inner.wants_anew(&key(owner));
                    }
                }
            }
        }
        for app in left {
            self.leave_empty(inner, owner, &app);
        }
        if !gone {
            return Ok(0);
        }
        self.brings(inner, owner, revision);
        let wish = inner.wish();
        drop(guard);
        shared.news.notify_one();
        Ok(wish)
    }

    /// Wants nothing of an owner any more that is not on the branch yet: it is suspended, and a branch that takes no pushes now may take
    /// them later.
    pub fn withdraw(&self, owner: &OwnerText) {
        let Some(shared) = &self.shared else { return };
        let mut guard = shared.lock();
        let inner = &mut *guard;
        // (What is on its way now may be refused, and would be sent again.)
        let folder = join(&self.folder, &layout::owner(&owner.kind, &owner.namespace, &owner.name)) + "/";
        let agent = join(&join(&self.folder, layout::SYNC), &layout::agent_name(&owner.hash, ""));
        for start in [folder, agent] {
            let of_owner =
                inner.files.range(start.clone()..).take_while(|(path, _)| path.starts_with(&start));
            let waits = |path: &str, id: Option<Id>| match id {
                Some(id) => !inner.has(path, id),
                None => inner.at(path).is_some(),
            };
            let waiting: Vec<String> =
                of_owner.filter(|(path, id)| waits(path, **id)).map(|(path, _)| path.clone()).collect();
            for path in waiting {
                inner.exact.remove(folder_of(&path));
                inner.files.remove(&path);
                inner.tokens.remove(&path);
            }
        }
    }

    /// Says that all files of an app were handed over: others in its folder leave.
    pub fn is_all(&self, owner: &OwnerText, app: &str) {
        let Some(shared) = &self.shared else { return };
        let folder = join(&self.folder, &layout::app(&owner.kind, &owner.namespace, &owner.name, app));
        let mut inner = shared.lock();
        if inner.exact.insert(folder.clone()) {
            inner.touched.insert(folder);
        }
    }

    /// Says that not all files of an app are known.
    pub fn is_not_all(&self, owner: &OwnerText, app: &str) {
        let Some(shared) = &self.shared else { return };
        let folder = join(&self.folder, &layout::app(&owner.kind, &owner.namespace, &owner.name, app));
        shared.lock().exact.remove(&folder);
    }

    /// Waits until the branch has what an owner wanted.
    pub async fn settled(&self, owner: &OwnerText, wish: u64) -> Result<(), Fault> {
        let Some(shared) = &self.shared else { return Ok(()) };
        if wish == 0 {
            return Ok(());
        }
        let mut round = shared.round.subscribe();
        loop {
            {
                let now = round.borrow_and_update();
                if now.done >= wish {
                    let refused = now.refused.get(&key(owner));
                    return refused.map_or(Ok(()), |fault| Err(self.named(fault)));
                }
                if let Some((tried, fault)) = &now.failed
                    && *tried >= wish
                {
                    return Err(self.named(fault));
                }
            }
            if round.changed().await.is_err() {
                return Err(Fault::new("Timeout", "the branch is not published any more"));
            }
        }
    }

    /// Namespace and name of the object for the agent of an owner's app on the cluster.
    pub fn agent_object(
        &self,
        owner: &OwnerText,
        app: &str,
        account: Option<&str>,
    ) -> Option<(String, String)> {
        let shared = self.shared.as_ref()?;
        let namespace = match account.and_then(cloud::account_parts) {
            Some((namespace, _)) => namespace.to_owned(),
            None => shared.options().edge.namespace,
        };
        Some((namespace, layout::agent_name(&owner.hash, app)))
    }

    fn brings(&self, inner: &mut Inner, owner: &OwnerText, revision: i64) {
        let named = format!("{}/{}/{}", owner.kind, owner.namespace, owner.name);
        let brought = Brought { owner: named, revision };
        // A branch that takes no pushes may wait for days.
        if inner.brought.len() < MOST_BROUGHT || inner.brought.contains_key(&brought) {
            inner.brought.entry(brought).or_default().insert(self.cluster.to_string());
        }
    }

    /// Apps of an owner that have files, or are wanted to.
    fn apps(&self, inner: &Inner, owner: &OwnerText) -> BTreeSet<String> {
        if owner.kind == OwnerKind::LogicalCloud {
            return BTreeSet::from([cloud::APP.to_owned()]);
        }
        let folder = join(&self.folder, &layout::owner(&owner.kind, &owner.namespace, &owner.name));
        let root = inner.seen.and_then(|seen| seen.root);
        let there = inner.trees.folder(root, &join(&inner.folder, &folder)).ok().flatten();
        let mut apps: BTreeSet<String> =
            there.into_iter().flatten().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect();
        let start = format!("{folder}/");
        let mut next = start.clone();
        while let Some((path, _)) = inner.files.range(next..).next() {
            let Some(rest) = path.strip_prefix(&start) else { break };
            let (app, _) = rest.split_once('/').unwrap_or((rest, ""));
            // An app may have thousands of files: the search goes on behind them, since '0' comes after '/'.
            next = format!("{start}{app}0");
            apps.insert(app.to_owned());
        }
        apps
    }
}

/// An owner, as its folder on each cluster is called.
fn key(owner: &OwnerText) -> String {
    layout::owner(&owner.kind, &owner.namespace, &owner.name)
}

/// Wants a file; true if it is on the branch already.
fn want(inner: &mut Inner, path: &str, wanted: Id) -> bool {
    let there = inner.has(path, wanted);
    if inner.files.insert(path.to_owned(), Some(wanted)) != Some(Some(wanted)) || !there {
        inner.touched.insert(folder_of(path).to_owned());
    }
    there
}

/// Wants a file taken off; false if there is none.
fn leave(inner: &mut Inner, path: &str) -> bool {
    let wanted = inner.files.get(path).is_some_and(Option::is_some);
    if inner.at(path).is_none() && !wanted {
        return false;
    }
    inner.tokens.remove(path);
    inner.files.insert(path.to_owned(), None);
    inner.touched.insert(folder_of(path).to_owned());
    true
}

/// Whether a folder will have no files but its list.
fn is_empty(inner: &Inner, folder: &str) -> bool {
    let start = format!("{folder}/");
    let mut wanted = inner.files.range(start.clone()..).take_while(|(path, _)| path.starts_with(&start));
    if wanted.any(|(_, id)| id.is_some()) {
        return false;
    }
    let root = inner.seen.and_then(|seen| seen.root);
    let there = inner.trees.folder(root, &join(&inner.folder, folder)).ok().flatten();
    there.into_iter().flatten().all(|(name, _)| {
        let name = String::from_utf8_lossy(name);
        name == layout::LIST || inner.files.get(&join(folder, &name)) == Some(&None)
    })
}

pub(super) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Who applies an app: the account of its logical cloud, after that.
fn applier(installation: &str, owner: &OwnerText, account: Option<&str>) -> Applier {
    let account = account.and_then(cloud::account_parts);
    let of_cloud = account.and_then(|(_, name)| name.strip_prefix(cloud::account_name("").as_str()));
    let after = of_cloud.map(|of_cloud| {
        let hash = owner_hash(installation, &OwnerKind::LogicalCloud, &owner.namespace, of_cloud);
        layout::agent_name(&hash, cloud::APP)
    });
    let account = account.map(|(namespace, name)| (namespace.to_owned(), name.to_owned()));
    Applier { account, after }
}
