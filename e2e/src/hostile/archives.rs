//! Small archives that unpack to the most that an archive may have, nine at once: all of them are accepted.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};
use serde_json::json;

use super::{Running, deploy};
use crate::bed::Bed;
use crate::operator::binary_map;

const ARCHIVES: usize = 9;
/// Together a little below the limit of an archive, 32 MiB.
const FILES: usize = 31;
const FILE_BYTES: usize = 1 << 20;

pub(super) async fn begin(bed: &Bed, project: &str) -> Result<Running> {
    let mut running = Running::default();
    for number in 0..ARCHIVES {
        let name = format!("archive-{number}");
        let bytes = archive(&name)?;
        binary_map(bed, project, &name, BTreeMap::from([("chart.tgz".to_owned(), bytes)])).await?;
        let source = json!({"configMapRef": {"name": name, "key": "chart.tgz"}});
        running.objects.extend(deploy(bed, project, &name, &source, &[]).await?.objects);
    }
    Ok(running)
}

/// A chart of this name with files of zeros.
fn archive(name: &str) -> Result<Vec<u8>> {
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::best()));
    let mut add = |path: String, content: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o644);
        header.set_size(content.len() as u64);
        tar.append_data(&mut header, path, content)
    };
    let chart = format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    add(format!("{name}/Chart.yaml"), chart.as_bytes())?;
    // Templates reach files by a pattern, so none of them can be dropped once they are read.
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {files: '{{ len (.Files.Glob \"files/*\") }}'}\n";
    add(format!("{name}/templates/note.yaml"), note.as_bytes())?;
    let zeros = vec![0; FILE_BYTES];
    for number in 0..FILES {
        add(format!("{name}/files/{number}"), &zeros)?;
    }
    let mut gzip = tar.into_inner()?;
    gzip.flush()?;
    Ok(gzip.finish()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_fits_into_a_config_map_and_unpacks_to_the_limit() {
        let bytes = archive("large").unwrap();
        assert!(bytes.len() < 512 << 10, "{} bytes", bytes.len());
        assert!(FILES * FILE_BYTES > 800 * bytes.len());
        let limits = emco_helm::Limits::default();
        emco_helm::Chart::load(&bytes, &limits).unwrap();
        let more = u64::try_from(FILES * FILE_BYTES + 2 * FILE_BYTES).unwrap();
        assert!(more > limits.archive_bytes, "it is near the limit");
    }
}
