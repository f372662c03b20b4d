//! Against the server that Git itself has.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use emco_engine::git::commit;
use emco_engine::git::object::{Format, Id, Kind, name_of, tree_of};
use emco_engine::git::tree::{Edits, Trees};
use parking_lot::Mutex;

use super::super::remote::{Push, Pushed};
use super::super::*;
use crate::git::packing::{Packed, pack};
use crate::git::testing::{backend, git};
use crate::remote::testing::{Handler, Server, Setup, dialer};

const SHA1: Format = Format::Sha1;

/// A repository without a work tree, and what serves it.
struct Real {
    folder: tempfile::TempDir,
    remote: HttpRemote,
    asked: Arc<Mutex<Vec<String>>>,
    _server: Server,
}

impl Real {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let (root, log) = (folder.path().to_owned(), Arc::clone(&asked));
        let handler: Handler = Arc::new(move |request| {
            log.lock().push(request.uri().path().to_owned());
            backend(&root, request)
        });
        let server = Server::start(Setup { authority: None, alpn: &[], names: &[] }, handler).await;
        git(folder.path(), folder.path(), &["init", "-q", "--bare", "-b", "main", "fleet.git"]);
        let url = format!("http://{}/fleet.git", server.address);
        let remote = HttpRemote::new(dialer(), &url, "main", Login::default()).unwrap();
        let real = Self { folder, remote, asked, _server: server };
        real.git(&["config", "http.receivepack", "true"]);
        real.git(&["config", "uploadpack.allowFilter", "true"]);
        real
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("fleet.git")
    }

    fn git(&self, args: &[&str]) -> String {
        git(self.folder.path(), &self.root(), args)
    }
}

/// A push of one commit with these files.
fn push(parent: Option<Id>, files: &[(&str, &str)]) -> Push {
    let edits: Edits = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), Some(name_of(SHA1, Kind::Blob, text.as_bytes()))))
        .collect();
    let edited = Trees::default().edit(None, &edits, SHA1).unwrap();
    let content = commit::content(edited.root.unwrap(), parent, 1_795_000_000, "files\n");
    let mut objects = vec![Packed::new(Kind::Commit, &content, SHA1)];
    let new = objects[0].id;
    objects.extend(edited.made.values().map(|content| Packed::new(Kind::Tree, content, SHA1)));
    objects.extend(files.iter().map(|(_, text)| Packed::new(Kind::Blob, text.as_bytes(), SHA1)));
    Push { format: SHA1, old: parent, new, pack: pack(&objects, SHA1) }
}

#[tokio::test]
async fn a_real_server_takes_what_is_pushed_and_gives_it_back() {
    let real = Real::new().await;
    let tip = real.remote.tip().await.unwrap();
    assert_eq!((tip.commit, tip.empty), (None, true));
    let first = push(None, &[("clusters/a/x.yaml", "x: 1\n"), ("clusters/a.b", "y\n")]);
    assert_eq!(real.remote.push(&first).await, Ok(Pushed::Done));
    assert_eq!(real.git(&["rev-parse", "main"]), first.new.to_string());
    real.git(&["fsck", "--strict"]);
    assert_eq!(real.git(&["show", "main:clusters/a/x.yaml"]), "x: 1");
    let tip = real.remote.tip().await.unwrap();
    assert_eq!(tip.commit, Some(first.new));
    let snapshot = real.remote.snapshot(first.new).await.unwrap();
    let root = tree_of(&snapshot.commit, SHA1);
    let mut trees = Trees::default();
    for (id, content) in &snapshot.trees {
        assert!(trees.insert(*id, content, SHA1));
    }
    let file = trees.at(root, "clusters/a/x.yaml").unwrap().unwrap();
    assert_eq!(real.remote.blob(file.id).await.unwrap(), b"x: 1\n");
    real.asked.lock().clear();
    real.remote.tip().await.unwrap();
    assert_eq!(*real.asked.lock(), ["/fleet.git/git-upload-pack"], "at rest a look is one request");
}

#[tokio::test]
async fn a_real_server_refuses_what_is_stale_and_what_its_hook_refuses() {
    let real = Real::new().await;
    let first = push(None, &[("a", "1")]);
    assert_eq!(real.remote.push(&first).await, Ok(Pushed::Done));
    let stale = push(None, &[("a", "2")]);
    assert!(matches!(real.remote.push(&stale).await, Ok(Pushed::Refused(_))));
    assert_eq!(real.git(&["rev-parse", "main"]), first.new.to_string());
    let hook = real.root().join("hooks/pre-receive");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\necho only on weekdays >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let next = push(Some(first.new), &[("a", "3")]);
    let refused = Pushed::Refused("pre-receive hook declined: only on weekdays".to_owned());
    assert_eq!(real.remote.push(&next).await, Ok(refused));
}

#[tokio::test]
async fn a_branch_that_is_not_there_is_told_from_an_empty_repository() {
    let real = Real::new().await;
    let first = push(None, &[("a", "1")]);
    real.remote.push(&first).await.unwrap();
    real.git(&["branch", "-m", "main", "other"]);
    let tip = real.remote.tip().await.unwrap();
    assert_eq!((tip.commit, tip.empty), (None, false));
}

#[tokio::test]
async fn an_address_without_a_repository_is_named() {
    let real = Real::new().await;
    std::fs::remove_dir_all(real.root()).unwrap();
    let fault = real.remote.tip().await.unwrap_err();
    assert_eq!(fault.reason, "RepositoryNotFound");
}
