//! Packs a chart's folder: the same bytes for the same files, whoever packs them.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use emco_controllers::chart::{digest, tar_of};
use emco_helm::chart::{File, files_of};
use emco_helm::{Chart, Compiled, Limits};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Largest archive that is read.
const MOST: u64 = 32 << 20;

/// A chart as one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// As `Chart.yaml` says.
    pub name: String,
    pub version: String,
    /// `sha256:...` of the archive.
    pub digest: String,
    pub bytes: Vec<u8>,
}

/// The chart of a folder, or of an archive, if it can be installed.
pub fn packed(path: &Path) -> anyhow::Result<Packed> {
    let (shown, limits) = (path.display(), Limits::default());
    let bytes = if path.is_dir() {
        if !path.join("Chart.yaml").is_file() {
            bail!("{shown} has no Chart.yaml: name the folder of a chart");
        }
        let files = files_of(path, &limits).map_err(|error| anyhow!("{shown}: {error}"))?;
        compressed(files, &limits).with_context(|| format!("{shown} cannot be packed"))?
    } else {
        read(path)?
    };
    let chart = Chart::load(&bytes, &limits).map_err(|error| anyhow!("{shown} is no chart: {error}"))?;
    let (name, version) = (chart.name().to_owned(), chart.version().to_owned());
    if chart.is_library() {
        bail!(
            "chart {name} {version} is a library for other charts and installs nothing: push the chart that uses it"
        );
    }
    if let Err(error) = Compiled::new(chart) {
        bail!("chart {name} {version} cannot be installed: {error}");
    }
    Ok(Packed { name, version, digest: digest(&bytes), bytes })
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    let shown = path.display();
    let named = "name the folder of a chart, or what helm package made of it";
    let unread = || format!("{shown} cannot be read: {named}");
    let size = std::fs::metadata(path).with_context(unread)?.len();
    if size > MOST {
        bail!("{shown} has {size} bytes, which is no chart: {named}");
    }
    std::fs::read(path).with_context(unread)
}

/// Nothing in it says when or where it was packed.
fn compressed(files: Vec<File>, limits: &Limits) -> anyhow::Result<Vec<u8>> {
    let files: BTreeMap<String, Arc<[u8]>> = files.into_iter().map(|file| (file.name, file.data)).collect();
    let most = usize::try_from(limits.archive_bytes).unwrap_or(usize::MAX);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&tar_of(&files, most)?)?;
    Ok(encoder.finish()?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn chart(folder: &Path, more: &[(&str, &str)]) {
        fs::create_dir_all(folder.join("templates")).unwrap();
        fs::write(folder.join("Chart.yaml"), "apiVersion: v2\nname: web\nversion: 1.2.0\n").unwrap();
        fs::write(folder.join("templates/note.yaml"), "apiVersion: v1\nkind: ConfigMap\n").unwrap();
        for (name, text) in more {
            fs::write(folder.join(name), text).unwrap();
        }
    }

    fn refused(path: &Path) -> String {
        format!("{:#}", packed(path).unwrap_err())
    }

    #[test]
    fn the_same_files_are_the_same_bytes_and_ignored_ones_are_left_out() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let ignore = (".helmignore", "*.bak\n");
        chart(one.path(), &[ignore]);
        chart(two.path(), &[ignore, ("old.bak", "nothing")]);
        let packed_one = packed(one.path()).unwrap();
        assert_eq!((packed_one.name.as_str(), packed_one.version.as_str()), ("web", "1.2.0"));
        assert_eq!(packed_one, packed(two.path()).unwrap());
        let archive = one.path().join("web-1.2.0.tgz");
        fs::write(&archive, &packed_one.bytes).unwrap();
        assert_eq!(packed(&archive).unwrap(), packed_one, "a packed chart is taken as it is");
        fs::remove_file(archive).unwrap();
        fs::write(two.path().join("values.yaml"), "a: 1\n").unwrap();
        assert_ne!(packed(two.path()).unwrap().digest, packed_one.digest);
    }

    #[test]
    fn what_cannot_be_installed_is_refused_with_what_helps() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(refused(path).ends_with("has no Chart.yaml: name the folder of a chart"));
        assert!(refused(&path.join("absent")).contains("cannot be read: name the folder of a chart"));
        fs::write(path.join("text"), "no chart").unwrap();
        assert!(refused(&path.join("text")).contains("is no chart"));
        chart(path, &[]);
        let library = "apiVersion: v2\nname: web\nversion: 1.2.0\ntype: library\n";
        fs::write(path.join("Chart.yaml"), library).unwrap();
        assert!(refused(path).contains("is a library for other charts"));
        let needs = "apiVersion: v2\nname: web\nversion: 1.2.0\ndependencies:\n- {name: db, version: 1.0.0, repository: ''}\n";
        fs::write(path.join("Chart.yaml"), needs).unwrap();
        let said = refused(path);
        assert!(said.contains("`helm dependency build`") && said.ends_with("directory: db"), "{said}");
    }
}
