//! Archives by digest in a folder: bytes come in, the same bytes or nothing goes out. Beside them, which digest a source
//! gave for whose credentials.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

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
        Ok(Self(Arc::new(Inner { archives, references, salt, most_bytes, writes: AtomicU64::new(0) })))
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

    /// Keeps an archive and what its key stands for; the least recently used make room.
    pub async fn write(&self, key: &str, digest: &str, bytes: &Arc<[u8]>) -> Result<(), String> {
        let (disk, key, digest, bytes) = (self.clone(), key.to_owned(), digest.to_owned(), Arc::clone(bytes));
        tokio::task::spawn_blocking(move || {
            disk.store(&key, &digest, &bytes).map_err(|error| error.to_string())
        })
        .await
        .map_err(|error| error.to_string())?
    }

    fn store(&self, key: &str, digest: &str, bytes: &[u8]) -> std::io::Result<()> {
        let (Some(name), Some(key)) = (plain(digest), plain(key)) else {
            return Err(std::io::ErrorKind::InvalidInput.into());
        };
        let archive = self.0.archives.join(name);
        if !archive.exists() {
            self.atomically(&archive, bytes)?;
        }
        self.atomically(&self.0.references.join(key), digest.as_bytes())?;
        shrink(&self.0.archives, self.0.most_bytes, usize::MAX, &archive)?;
        shrink(&self.0.references, u64::MAX, REFERENCES, Path::new(""))
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

fn shrink(folder: &Path, most_bytes: u64, most_files: usize, keep: &Path) -> std::io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let Ok(meta) = entry.metadata() else { continue };
        files.push((meta.modified().unwrap_or(SystemTime::UNIX_EPOCH), meta.len(), entry.path()));
    }
    files.sort();
    let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
    let mut count = files.len();
    for (_, size, path) in &files {
        if bytes <= most_bytes && count <= most_files {
            break;
        }
        if path != keep {
            fs::remove_file(path)?;
            bytes -= size;
            count -= 1;
        }
    }
    Ok(())
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
