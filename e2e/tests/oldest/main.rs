//! Compares where the oldest version of Kubernetes is named, which hubs and edges may have.
//!
//! That everything works there is tried by `make soak STEP=oldest` alone: building that API server takes ten minutes, and only a real
//! one shows what it does not know yet. So the sibling in each run sees to it that nothing is promised which is not tried there.

mod soak;

use emco_e2e::operator::root;
use emco_e2e::programs::Program;

#[test]
fn the_book_and_the_charts_promise_the_version_that_is_tried() {
    let version = Program::OldestApiServer.version();
    let minor = version.rsplit_once('.').unwrap().0.trim_start_matches('v');
    for (file, promise) in [
        ("docs/install.md", format!("a Kubernetes cluster of version {minor} or later")),
        ("charts/emco/Chart.yaml", format!("kubeVersion: \">={minor}.0-0\"\n")),
        ("charts/emco-crds/Chart.yaml", format!("kubeVersion: \">={minor}.0-0\"\n")),
    ] {
        let text = std::fs::read_to_string(root().join(file)).unwrap();
        assert!(text.contains(&promise), "tried is {version}, {file} does not say {promise:?}");
    }
}
