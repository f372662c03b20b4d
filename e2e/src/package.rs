//! Packages the folder of a chart, with the same bytes for the same files on every machine.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use emco_helm::Limits;
use emco_helm::chart::files_of;
use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde::Deserialize;

/// More than that is not a chart, but a file named by mistake.
const MOST_BYTES: u64 = 10 * 1024 * 1024;

/// A chart as one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Package {
    /// As `Chart.yaml` says.
    pub name: String,
    /// As `Chart.yaml` says.
    pub version: String,
    /// The archive.
    pub bytes: Vec<u8>,
}

/// What is read of `Chart.yaml`.
#[derive(Deserialize)]
struct ChartFile {
    name: String,
    version: String,
}

impl Package {
    /// Packages the chart in `folder`. Names of files come in order, times and owners are left out.
    pub fn of_folder(folder: &Path) -> Result<Self> {
        let files = files(folder)?;
        let chart = files
            .get("Chart.yaml")
            .with_context(|| format!("{} has no Chart.yaml: name the folder of a chart", folder.display()))?;
        let chart = chart_file(chart).with_context(|| folder.join("Chart.yaml").display().to_string())?;
        let bytes =
            archive(&chart.name, &files).with_context(|| format!("cannot package {}", folder.display()))?;
        Ok(Self { name: chart.name, version: chart.version, bytes })
    }

    /// Reads what a packaged chart calls itself. All of it is read, so that one that was cut off is noticed.
    pub fn of_archive(bytes: Vec<u8>) -> Result<Self> {
        let mut archive = tar::Archive::new(GzDecoder::new(bytes.as_slice()).take(MOST_BYTES * 10));
        let mut chart = None;
        for entry in archive.entries().context("it is not a tar archive")? {
            let mut entry = entry.context("it is not a gzipped tar archive, or not all of one")?;
            let path = entry.path().context("it holds a path that cannot be read")?.into_owned();
            let mut text = Vec::new();
            (&mut entry)
                .take(MOST_BYTES)
                .read_to_end(&mut text)
                .with_context(|| format!("its {} cannot be read", path.display()))?;
            if path.components().count() == 2 && path.ends_with("Chart.yaml") {
                chart = Some(chart_file(&text).with_context(|| path.display().to_string())?);
            }
        }
        // What is left holds the checksum.
        std::io::copy(&mut archive.into_inner(), &mut std::io::sink()).context("its end is missing")?;
        match chart {
            Some(chart) => Ok(Self { name: chart.name, version: chart.version, bytes }),
            None => bail!("it has no NAME/Chart.yaml, so it is not a packaged chart"),
        }
    }

    /// `NAME-VERSION.tgz`, as Helm names it.
    pub fn file_name(&self) -> String {
        format!("{}-{}.tgz", self.name, self.version)
    }
}

fn chart_file(text: &[u8]) -> Result<ChartFile> {
    serde_yaml::from_slice(text).context("it does not name the chart and its version")
}

/// The files of `folder` that `.helmignore` leaves, as Helm packages them, by path with slashes.
fn files(folder: &Path) -> Result<BTreeMap<String, Arc<[u8]>>> {
    let files = files_of(folder, &Limits::default());
    let files = files.with_context(|| format!("{}: is it the folder of a chart?", folder.display()))?;
    Ok(files.into_iter().map(|file| (file.name, file.data)).collect())
}

fn archive(chart: &str, files: &BTreeMap<String, Arc<[u8]>>) -> Result<Vec<u8>> {
    let gzip = GzBuilder::new().mtime(0).operating_system(255).write(Vec::new(), Compression::best());
    let mut tar = tar::Builder::new(gzip);
    // Helm wants to see Chart.yaml first; so does whoever looks into the archive.
    let first = files.get_key_value("Chart.yaml").into_iter();
    for (path, content) in first.chain(files.iter().filter(|(path, _)| *path != "Chart.yaml")) {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_mtime(0);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, format!("{chart}/{path}"), content.as_ref())?;
    }
    let mut gzip = tar.into_inner()?;
    gzip.flush()?;
    Ok(gzip.finish()?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn chart(folder: &Path) {
        fs::create_dir_all(folder.join("templates/deep")).unwrap();
        fs::write(folder.join("values.yaml"), "a: 1\n").unwrap();
        fs::write(folder.join("templates/deep/b.yaml"), "b").unwrap();
        fs::write(folder.join("Chart.yaml"), "apiVersion: v2\nname: shop\nversion: 1.2.3\n").unwrap();
    }

    #[test]
    fn the_same_files_give_the_same_bytes_whatever_their_times() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("other"));
        chart(&one);
        chart(&other);
        let file = fs::File::options().write(true).open(other.join("values.yaml")).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(Package::of_folder(&one).unwrap(), Package::of_folder(&other).unwrap());
    }

    #[test]
    fn what_helmignore_names_is_not_packaged() {
        let dir = tempfile::tempdir().unwrap();
        chart(dir.path());
        let without = Package::of_folder(dir.path()).unwrap();
        fs::create_dir(dir.path().join("tests")).unwrap();
        fs::write(dir.path().join("tests/values.yaml"), "a: 2\n").unwrap();
        assert_ne!(Package::of_folder(dir.path()).unwrap(), without);
        fs::write(dir.path().join(".helmignore"), "tests/\n.helmignore\n").unwrap();
        assert_eq!(Package::of_folder(dir.path()).unwrap(), without);
    }

    #[test]
    fn a_package_names_itself_as_its_folder_does() {
        let dir = tempfile::tempdir().unwrap();
        chart(dir.path());
        let package = Package::of_folder(dir.path()).unwrap();
        assert_eq!(package.file_name(), "shop-1.2.3.tgz");
        assert_eq!(Package::of_archive(package.bytes.clone()).unwrap(), package);
    }

    #[test]
    fn what_is_no_chart_is_refused_with_its_name() {
        let dir = tempfile::tempdir().unwrap();
        let error = Package::of_folder(dir.path()).unwrap_err();
        assert!(format!("{error:#}").contains("has no Chart.yaml"), "{error:#}");
        assert!(Package::of_archive(b"no archive".to_vec()).is_err());
        chart(dir.path());
        let whole = Package::of_folder(dir.path()).unwrap().bytes;
        for end in [whole.len() / 2, whole.len() - 1] {
            assert!(Package::of_archive(whole[..end].to_vec()).is_err(), "{end} of {} bytes", whole.len());
        }
    }
}
