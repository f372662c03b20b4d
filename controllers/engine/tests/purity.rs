//! What the crate may be made of: no client, no runtime, no sockets. Cargo enforces the layers; this shows that it does.

use std::process::Command;

#[test]
fn the_engine_reaches_no_client_and_no_runtime() {
    for package in ["emco-engine", "emco-helm"] {
        let output = Command::new(env!("CARGO"))
            .args(["tree", "--offline", "-p", package, "-e", "normal", "--prefix", "none", "--format", "{p}"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let tree = String::from_utf8(output.stdout).unwrap();
        let names: std::collections::BTreeSet<_> =
            tree.lines().filter_map(|line| line.split(' ').next()).collect();
        assert!(names.contains(package), "the tree of {package} names itself");
        for forbidden in
            ["kube-client", "kube-runtime", "tokio", "hyper", "reqwest", "rustls", "mio", "socket2"]
        {
            assert!(!names.contains(forbidden), "{package} must stay pure, but {forbidden} is in its tree");
        }
    }
}
