//! Reads the files of a chart's folder that `.helmignore` leaves, in the order of their names.
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::archive::{Budget, file};
use super::ignore::Rules;
use super::{File, LoadError};

/// Symbolic links are followed, so folders could contain themselves.
const MAX_DEPTH: usize = 64;

fn io(path: &Path) -> impl Fn(std::io::Error) -> LoadError + '_ {
    move |error| LoadError::Io { path: path.display().to_string(), error: error.to_string() }
}

/// Reads a file of at most `max` bytes.
pub(super) fn read_file(path: &Path, max: u64) -> Result<Vec<u8>, LoadError> {
    let mut data = Vec::new();
    fs::File::open(path).map_err(io(path))?.take(max + 1).read_to_end(&mut data).map_err(io(path))?;
    if u64::try_from(data.len()).is_ok_and(|len| len > max) {
        return Err(LoadError::Limit(format!("{} has more than {max} bytes", path.display())));
    }
    Ok(data)
}

pub(super) fn read(root: &Path, budget: &mut Budget) -> Result<Vec<File>, LoadError> {
    let ignore = root.join(".helmignore");
    let rules = if ignore.is_file() { read_file(&ignore, 1 << 20)? } else { Vec::new() };
    let rules = Rules::parse(&String::from_utf8_lossy(&rules)).map_err(LoadError::Invalid)?;
    let mut walk = Walk { rules, budget, files: Vec::new() };
    walk.folder(root, "", 0)?;
    Ok(walk.files)
}

struct Walk<'b> {
    rules: Rules,
    budget: &'b mut Budget,
    files: Vec<File>,
}

impl Walk<'_> {
    fn folder(&mut self, path: &Path, prefix: &str, depth: usize) -> Result<(), LoadError> {
        if depth > MAX_DEPTH {
            return Err(LoadError::Limit(format!("{} nests more than {MAX_DEPTH} folders", path.display())));
        }
        let mut entries: Vec<(String, PathBuf)> = Vec::new();
        for entry in fs::read_dir(path).map_err(io(path))? {
            let entry = entry.map_err(io(path))?;
            entries.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
        entries.sort();
        for (name, path) in entries {
            let name = format!("{prefix}{name}");
            // Links are followed, as Helm does.
            let meta = fs::metadata(&path).map_err(io(&path))?;
            if self.rules.ignores(&name, meta.is_dir()) {
                continue;
            }
            if meta.is_dir() {
                self.folder(&path, &format!("{name}/"), depth + 1)?;
                continue;
            }
            if !meta.is_file() {
                return Err(LoadError::Invalid(format!("cannot load irregular file {}", path.display())));
            }
            self.budget.take(&name, usize::try_from(meta.len()).unwrap_or(usize::MAX))?;
            let data = read_file(&path, meta.len())?;
            self.files.push(file(name, &data));
        }
        Ok(())
    }
}
