//! Keeps archives by digest in a folder, and which digest a source gave for whose credentials. The project that has most
//! makes room.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use parking_lot::Mutex;

use super::digest;
use crate::remote::kubeconfig::provider;

/// References kept.
const REFERENCES: usize = 4096;
const SALT_BYTES: usize = 32;

/// The folder. Cheap to clone into a blocking task.
#[derive(Clone)]
pub struct Disk(Arc<Inner>);

struct Inner {
    archives: PathBuf,
    references: PathBuf,
    salt: Vec<u8>,
    most_bytes: u64,
    writes: AtomicU64,
    /// Projects that had files written; what an earlier process wrote counts as one project's.
    writers: Mutex<BTreeMap<PathBuf, Arc<str>>>,
}

impl Disk {
    /// Makes the folders, and removes what an earlier process did not finish writing.
    #[allow(clippy::needless_pass_by_value)] // kept by callers nowhere else
    pub fn open(folder: PathBuf, most_bytes: u64) -> Result<Self, String> {
        let told =
            |error: std::io::Error| format!("the chart cache {} cannot be used: {error}", folder.display());
        let (archives, references) = (folder.join("archives"), folder.join("references"));
        for path in [&archives, &references] {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(told)?;
            for entry in fs::read_dir(path).map_err(told)?.flatten() {
                if entry.file_name().to_string_lossy().ends_with(".part") {
                    fs::remove_file(entry.path()).map_err(told)?;
                }
            }
        }
        let salt = salt(&folder).map_err(told)?;
        Ok(Self(Arc::new(Inner {
            archives,
            references,
            salt,
            most_bytes,
            writes: AtomicU64::new(0),
            writers: Mutex::default(),
        })))
    }

    /// Random bytes of this cache: keys made of credentials say nothing without it.
    pub fn salt(&self) -> &[u8] {
        &self.0.salt
    }

    /// The archive with a digest, if it still has that digest.
    pub async fn read(&self, wanted: &str) -> Option<Arc<[u8]>> {
        let (disk, wanted) = (self.clone(), wanted.to_owned());
        tokio::task::spawn_blocking(move || {
            let path = disk.0.archives.join(plain(&wanted)?);
            let bytes = fs::read(&path).ok()?;
            if digest(&bytes) != wanted {
                tracing::warn!(path = %path.display(), "a kept chart archive changed on disk and is dropped");
                let _ = fs::remove_file(&path);
                return None;
            }
            touch(&path);
            Some(Arc::from(bytes))
        })
        .await
        .ok()?
    }

    /// The digest that a key stood for last.
    pub async fn reference(&self, key: &str) -> Option<String> {
        let path = self.0.references.join(plain(key)?);
        tokio::task::spawn_blocking(move || {
            let text = fs::read_to_string(&path).ok().filter(|text| plain(text).is_some())?;
            touch(&path);
            Some(text)
        })
        .await
        .ok()?
    }

    /// Keeps an archive of a project and what its key stands for; the least recently used of the project with most make room.
    pub async fn write(
        &self,
        key: &str,
        digest: &str,
        bytes: &Arc<[u8]>,
        project: &str,
    ) -> Result<(), String> {
        let (disk, key, digest, bytes) = (self.clone(), key.to_owned(), digest.to_owned(), Arc::clone(bytes));
        let project: Arc<str> = Arc::from(project);
        tokio::task::spawn_blocking(move || {
            disk.store(&key, &digest, &bytes, &project).map_err(|error| error.to_string())
        })
        .await
        .map_err(|error| error.to_string())?
    }

    fn store(&self, key: &str, digest: &str, bytes: &[u8], project: &Arc<str>) -> std::io::Result<()> {
        let (Some(name), Some(key)) = (plain(digest), plain(key)) else {
            return Err(std::io::ErrorKind::InvalidInput.into());
        };
        let archive = self.0.archives.join(name);
        if !archive.exists() {
            self.atomically(&archive, bytes)?;
        }
        let reference = self.0.references.join(key);
        self.atomically(&reference, digest.as_bytes())?;
        let mut writers = self.0.writers.lock();
        for path in [&archive, &reference] {
            writers.entry(path.clone()).or_insert_with(|| Arc::clone(project));
        }
        shrink(&self.0.archives, self.0.most_bytes, usize::MAX, (&archive, &mut writers))?;
        shrink(&self.0.references, u64::MAX, REFERENCES, (&reference, &mut writers))
    }

    /// Readers see the whole file or none.
    fn atomically(&self, path: &Path, bytes: &[u8]) -> std::io::Result<()> {
        let part = path.with_extension(format!("{}.part", self.0.writes.fetch_add(1, Ordering::Relaxed)));
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&part)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&part, path)
    }
}

/// `sha256:ab12` as a file name; nothing else is one.
fn plain(text: &str) -> Option<&str> {
    let hex = text.strip_prefix("sha256:").unwrap_or(text);
    (hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit())).then_some(hex)
}

/// Marks a file as used now. Only the order of eviction depends on it.
fn touch(path: &Path) {
    if let Ok(file) = fs::File::open(path) {
        let _ = file.set_modified(SystemTime::now());
    }
}

/// Removes files beyond the bounds: each time of the project with most bytes (with most files, where these are too many) the
/// one that was used longest ago, never `keep`.
fn shrink(
    folder: &Path,
    most_bytes: u64,
    most_files: usize,
    (keep, writers): (&Path, &mut BTreeMap<PathBuf, Arc<str>>),
) -> std::io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        files.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), entry.path()));
    }
    let here: BTreeSet<&PathBuf> = files.iter().map(|(_, _, path)| path).collect();
    writers.retain(|path, _| path.parent() != Some(folder) || here.contains(path));
    let project = |path: &Path| writers.get(path).cloned().unwrap_or_default();
    let mut taken: BTreeMap<Arc<str>, (u64, usize)> = BTreeMap::new();
    let mut left: BTreeMap<Arc<str>, std::collections::VecDeque<(u64, PathBuf)>> = BTreeMap::new();
    files.sort();
    for (_, size, path) in files {
        let project = project(&path);
        let all = taken.entry(Arc::clone(&project)).or_default();
        *all = (all.0 + size, all.1 + 1);
        if path != keep {
            left.entry(project).or_default().push_back((size, path));
        }
    }
    loop {
        let (bytes, count) = taken.values().fold((0, 0), |sum, of| (sum.0 + of.0, sum.1 + of.1));
        let many = count > most_files;
        if !many && bytes <= most_bytes {
            return Ok(());
        }
        let share = |project: &Arc<str>| {
            let (bytes, count) = taken.get(project).copied().unwrap_or_default();
            if many { u64::try_from(count).unwrap_or(u64::MAX) } else { bytes }
        };
        let Some((project, oldest)) = left
            .iter_mut()
            .min_by_key(|(project, _)| Reverse(share(project)))
            .map(|(project, left)| (Arc::clone(project), left.pop_front()))
        else {
            return Ok(());
        };
        let Some((size, path)) = oldest else {
            left.remove(&project);
            continue;
        };
        fs::remove_file(path)?;
        if let Some(all) = taken.get_mut(&project) {
            *all = (all.0 - size, all.1 - 1);
        }
    }
}

fn salt(folder: &Path) -> std::io::Result<Vec<u8>> {
    let path = folder.join("salt");
    match fs::read(&path) {
        Ok(salt) if salt.len() == SALT_BYTES => return Ok(salt),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut salt = vec![0; SALT_BYTES];
    provider().secure_random.fill(&mut salt).map_err(|_| std::io::Error::other("no randomness"))?;
    let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(&salt)?;
    Ok(salt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_project_that_fills_the_disk_drops_its_own_archives() {
        let folder = tempfile::tempdir().unwrap();
        let disk = Disk::open(folder.path().to_owned(), 400).unwrap();
        let write = async |project: &str, n: u8| {
            let bytes: Arc<[u8]> = Arc::from(vec![n; 100]);
            let digest = digest(&bytes);
            disk.write(&digest, &digest, &bytes, project).await.unwrap();
            digest
        };
        let quiet = write("quiet", 0).await;
        let mut loud = Vec::new();
        for n in 1..10 {
            loud.push(write("loud", n).await);
        }
        assert!(disk.read(&quiet).await.is_some());
        assert!(disk.read(&loud[8]).await.is_some(), "the newest");
        assert!(disk.read(&loud[0]).await.is_none());
    }
}
