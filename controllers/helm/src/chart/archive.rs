//! Unpacks a packaged chart (gzipped tar) into files with safe names.
use std::io::Read;
use std::sync::Arc;

use super::{File, LoadError};
use crate::limits::Limits;

/// How a gzip stream starts.
pub(super) const GZIP: [u8; 2] = [0x1f, 0x8b];

/// The largest single file, as in Helm.
const MAX_FILE: u64 = 5 << 20;

/// Charts inside charts inside charts; real ones reach four.
const MAX_NESTING: usize = 32;

/// What loading a chart may still take, nested archives included.
pub(super) struct Budget {
    bytes: u64,
    files: usize,
    max_bytes: u64,
    max_files: usize,
    nesting: usize,
}

impl Budget {
    pub fn new(limits: &Limits) -> Self {
        Self {
            bytes: limits.archive_bytes,
            files: limits.archive_files,
            max_bytes: limits.archive_bytes,
            max_files: limits.archive_files,
            nesting: 0,
        }
    }

    /// Accounts for a file.
    pub fn take(&mut self, name: &str, bytes: usize) -> Result<(), LoadError> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        if bytes > MAX_FILE {
            return Err(LoadError::Limit(format!("the file {name:?} has more than {MAX_FILE} bytes")));
        }
        self.bytes = self
            .bytes
            .checked_sub(bytes)
            .ok_or_else(|| LoadError::Limit(format!("it has more than {} bytes", self.max_bytes)))?;
        self.files = self
            .files
            .checked_sub(1)
            .ok_or_else(|| LoadError::Limit(format!("it has more than {} files", self.max_files)))?;
        Ok(())
    }

    pub fn enter(&mut self) -> Result<(), LoadError> {
        if self.nesting >= MAX_NESTING {
            return Err(LoadError::Limit(format!("it nests more than {MAX_NESTING} charts")));
        }
        self.nesting += 1;
        Ok(())
    }

    pub fn leave(&mut self) {
        self.nesting -= 1;
    }
}

/// A file without its byte order mark.
pub(super) fn file(name: String, data: &[u8]) -> File {
    File { name, data: Arc::from(data.strip_prefix(b"\xef\xbb\xbf").unwrap_or(data)) }
}

/// Unpacks an archive whose files lie in one folder, and drops that folder's name.
pub(super) fn unpack(archive: &[u8], budget: &mut Budget) -> Result<Vec<File>, LoadError> {
    let unzipped = flate2::read::MultiGzDecoder::new(archive);
    // Headers of empty files cost bytes too; the reader ends where no chart within the budget can.
    let headers = u64::try_from(budget.files).unwrap_or(u64::MAX).saturating_mul(2048);
    let mut tar =
        tar::Archive::new(unzipped.take(budget.bytes.saturating_add(headers).saturating_add(1 << 20)));
    let broken = |error: std::io::Error| LoadError::Invalid(format!("the archive cannot be read: {error}"));
    let mut files = Vec::new();
    for entry in tar.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() || kind.is_pax_local_extensions() {
            continue;
        }
        let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let name = chart_path(&path)?;
        let declared = usize::try_from(entry.size()).unwrap_or(usize::MAX);
        budget.take(&path, declared)?;
        let mut data = Vec::new();
        entry.by_ref().take(MAX_FILE + 1).read_to_end(&mut data).map_err(broken)?;
        if data.len() > declared {
            return Err(LoadError::Limit(format!("the file {path:?} has more bytes than it declares")));
        }
        files.push(file(name, &data));
    }
    if files.is_empty() {
        return Err(LoadError::invalid("no files in chart archive"));
    }
    Ok(files)
}

/// The path inside the chart, without its top folder; paths that lead out of the chart are refused.
fn chart_path(path: &str) -> Result<String, LoadError> {
    let delimiter = if path.contains('\\') { '\\' } else { '/' };
    let (top, inner) = path.split_once(delimiter).unwrap_or((path, ""));
    let inner = inner.replace(delimiter, "/");
    if inner.starts_with('/') {
        return Err(LoadError::invalid("chart illegally contains absolute paths"));
    }
    let name = clean(&inner);
    if name == "." {
        return Err(LoadError::Invalid(format!(
            "chart illegally contains content outside the base directory: {path:?}"
        )));
    }
    if name.starts_with("..") {
        return Err(LoadError::invalid("chart illegally references parent directory"));
    }
    if matches!(name.as_bytes(), [drive, b':', b'/', ..] if drive.is_ascii_alphabetic()) {
        return Err(LoadError::invalid("chart contains illegally named files"));
    }
    if top == "Chart.yaml" {
        return Err(LoadError::invalid("chart yaml not in base directory"));
    }
    Ok(name)
}

/// A relative path without `.`, `..` inside and doubled slashes.
fn clean(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_leave_the_chart_are_refused() {
        assert_eq!(chart_path("shop/templates/./a.yaml").unwrap(), "templates/a.yaml");
        assert_eq!(chart_path("shop\\templates\\a.yaml").unwrap(), "templates/a.yaml");
        for bad in ["shop/../../etc/passwd", "shop//etc/passwd", "shop", "Chart.yaml/x", "shop/c:/x", "../x"]
        {
            let bad = chart_path(bad);
            assert!(bad.is_err() || bad.as_deref() == Ok("x"), "{bad:?}");
        }
        assert!(chart_path("shop/../../etc/passwd").is_err());
    }

    #[test]
    fn an_archive_that_unpacks_beyond_its_limit_is_refused() {
        let mut tar =
            tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
        let zeros = vec![0u8; 4 << 20];
        for index in 0..4 {
            let mut header = tar::Header::new_gnu();
            header.set_size(zeros.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, format!("c/f{index}"), zeros.as_slice()).unwrap();
        }
        let bomb = tar.into_inner().unwrap().finish().unwrap();
        let limits = Limits { archive_bytes: 10 << 20, ..Limits::default() };
        assert!(matches!(unpack(&bomb, &mut Budget::new(&limits)), Err(LoadError::Limit(_))));
        let limits = Limits { archive_files: 3, ..Limits::default() };
        assert!(matches!(unpack(&bomb, &mut Budget::new(&limits)), Err(LoadError::Limit(_))));
        assert_eq!(unpack(&bomb, &mut Budget::new(&Limits::default())).unwrap().len(), 4);
    }
}
