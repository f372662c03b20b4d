//! What people type, and what they get.

use std::path::Path;
use std::process::{Command, Output};

fn operator(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_emco-operator")).args(args).env_clear().output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn crds_prints_what_config_crd_holds() {
    let output = operator(&["crds"]);
    assert!(output.status.success());
    let printed = text(&output.stdout);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/crd");
    let kustomization = std::fs::read_to_string(folder.join("kustomization.yaml")).expect("a kustomization");
    let mut expected = String::new();
    for line in kustomization.lines() {
        if let Some(file) = line.strip_prefix("- ") {
            expected.push_str("---\n");
            expected.push_str(&std::fs::read_to_string(folder.join(file)).expect(file));
        }
    }
    assert!(expected.matches("kind: CustomResourceDefinition").count() >= 10);
    assert_eq!(printed, expected);
    let documents = printed.split("---\n").skip(1);
    for document in documents {
        serde_yaml::from_str::<serde_json::Value>(document).expect("YAML");
    }
}

#[test]
fn version_prints_the_version() {
    let output = operator(&["version"]);
    assert_eq!(text(&output.stdout), format!("emco-operator {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn a_bad_flag_gets_a_sentence_that_names_it() {
    for (args, words) in [
        (&["run", "--namespace", "Big_One"][..], &["--namespace", "lower-case letters"][..]),
        (&["run", "--debug-listen", "0.0.0.0:8081"], &["--debug-listen", "must be a loopback address"]),
        (&["run", "--debug-listen", "here"], &["--debug-listen", "such as 127.0.0.1:8081"]),
        (&["run", "--allow-edge-address", "127.0.0.1,ten"], &["--allow-edge-address", "such as 127.0.0.0/8"]),
        (&["run", "--edge-in-flight", "0"], &["--edge-in-flight", "1..=64"]),
        (&["run", "--max-connects", "100000"], &["--max-connects", "1..=1024"]),
        (&["run", "--log", "h2=trace"], &["--log", "credentials"]),
        (&["run", "--log-format", "xml"], &["--log-format", "text", "json"]),
        (&["walk"], &["walk", "unrecognized subcommand"]),
    ] {
        let output = operator(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let error = text(&output.stderr);
        for word in words {
            assert!(error.contains(word), "{args:?}: {error}");
        }
    }
}

#[test]
fn every_flag_of_run_has_an_environment_variable() {
    let help = text(&operator(&["run", "--help"]).stdout);
    let flags = help.lines().filter(|line| line.trim_start().starts_with("--")).count();
    assert!(flags >= 9, "{help}");
    assert_eq!(flags, help.matches("[env: EMCO_").count(), "{help}");
}

#[test]
fn without_a_hub_it_says_where_it_looked() {
    let dir = std::env::temp_dir().join(format!("emco-operator-test-{}", std::process::id()));
    let output = Command::new(env!("CARGO_BIN_EXE_emco-operator"))
        .args(["run", "--listen", "127.0.0.1:0", "--debug-listen", "127.0.0.1:0"])
        .args(["--probe-listen", "127.0.0.1:0", "--state-dir"])
        .arg(&dir)
        .env_clear()
        .env("KUBECONFIG", dir.join("missing"))
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(1));
    let error = text(&output.stderr);
    assert!(error.contains("set KUBECONFIG to a kubeconfig file"), "{error}");
}
