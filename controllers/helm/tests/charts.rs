//! The charts below `charts/`, one per feature, must print what real Helm printed (`charts/update.sh`).
use std::path::{Path, PathBuf};
use std::process::Command;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/charts")
}

/// The values files below the folder, with the case's path without suffix.
fn cases(suffix: &str) -> Vec<(PathBuf, PathBuf)> {
    let mut found = Vec::new();
    for chart in std::fs::read_dir(folder()).unwrap() {
        let chart = chart.unwrap().path();
        if !chart.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(&chart).unwrap() {
            let file = file.unwrap().path();
            let name = file.file_name().unwrap().to_str().unwrap();
            if let Some(case) = name.strip_suffix(suffix) {
                found.push((chart.join(case), file.clone()));
            }
        }
    }
    found.sort();
    assert!(!found.is_empty());
    found
}

struct Printed {
    succeeded: bool,
    out: String,
    err: String,
}

fn render(case: &Path, values: &Path) -> Printed {
    let flags = std::fs::read_to_string(case.with_extension("flags")).unwrap_or_default();
    let output = Command::new(env!("CARGO_BIN_EXE_emco-helm"))
        .args(["template", "shop"])
        .arg(case.parent().unwrap().join("chart"))
        .args(["--namespace", "store", "--include-crds", "--kube-version", "1.32.0", "--values"])
        .arg(values)
        .args(flags.split_whitespace())
        // Files that flags name.
        .current_dir(folder())
        .output()
        .unwrap();
    Printed {
        succeeded: output.status.success(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn charts_render_to_the_bytes_helm_prints_or_fail_with_its_error() {
    let mut wrong = Vec::new();
    for (case, values) in cases(".values.yaml") {
        let printed = render(&case, &values);
        let shown = case.strip_prefix(folder()).unwrap().display().to_string();
        if let Ok(expected) = std::fs::read_to_string(case.with_extension("out")) {
            if printed.out != expected {
                wrong.push(format!(
                    "== {shown}\n-- Helm\n{expected}\n-- here\n{}{}",
                    printed.out, printed.err
                ));
            }
            continue;
        }
        let expected = std::fs::read_to_string(case.with_extension("err")).unwrap();
        let error = printed.err.lines().find(|line| line.starts_with("Error")).unwrap_or_default();
        if printed.succeeded || error != expected.lines().next().unwrap_or_default() {
            wrong.push(format!("== {shown}\n-- Helm\n{expected}\n-- here\n{}{}", printed.out, printed.err));
        }
    }
    assert!(wrong.is_empty(), "{} cases differ\n{}", wrong.len(), wrong.join("\n"));
}

/// The words of schema problems are another library's; that there are some, and where, is not.
#[test]
fn values_that_break_a_schema_are_refused_with_their_path() {
    for (case, values) in cases(".refused.yaml") {
        let printed = render(&case, &values);
        let expected = std::fs::read_to_string(case.with_extension("err")).unwrap();
        assert!(!printed.succeeded, "{case:?}");
        for line in expected.lines().filter(|line| line.starts_with("- ")) {
            let (path, _) = line.split_once(':').unwrap();
            assert!(printed.err.contains(&format!("{path}:")), "{case:?}: {line}\n{}", printed.err);
        }
    }
}
