//! Replays the kept inputs of the fuzz targets: those that once failed, and some to start from.
use std::path::Path;
use std::time::{Duration, Instant};

#[path = "../fuzz/src/checks.rs"]
mod checks;

/// Unoptimized, on a busy machine; without its limits an input would run for ever.
const PATIENCE: Duration = Duration::from_secs(30);

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz_corpus").join(target);
    let mut count = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let data = std::fs::read(&path).unwrap();
        let start = Instant::now();
        println!("{}", path.display());
        check(&data);
        assert!(start.elapsed() < PATIENCE, "{} took {:?}", path.display(), start.elapsed());
        count += 1;
    }
    assert!(count > 1, "{} holds no inputs", folder.display());
}

#[test]
fn kept_templates_end_within_their_limits() {
    replay("template", checks::template);
}

#[test]
fn kept_yaml_reads_back_as_the_same() {
    replay("yaml", checks::yaml);
}

#[test]
fn kept_values_merge_and_render() {
    replay("values", checks::values);
}

#[test]
fn kept_archives_load_or_are_refused() {
    replay("archive", checks::archive);
}
