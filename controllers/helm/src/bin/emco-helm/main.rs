//! Runs `emco-helm`: prints the manifests of a chart as `helm template` prints them.
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod args;
mod name;
mod output;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::process::ExitCode;

use args::{Cli, Command, Template};
use clap::Parser;
use emco_helm::value::{Map, Value as GoValue};
use emco_helm::{
    Capabilities, Chart, Compiled, Limits, Release, RenderRequest, Set, merge_values, strvals, yaml,
};
use serde_json::Value;

/// The largest values file that is read.
const MAX_VALUES: u64 = 64 << 20;

fn main() -> ExitCode {
    let Command::Template(args) = Cli::parse().command;
    match template(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nothing can be done where even the message cannot be written.
            let _ = writeln!(std::io::stderr(), "Error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn template(args: &Template) -> Result<(), String> {
    let (name, path) = match args.names.as_slice() {
        [chart] => ("release-name", chart),
        [name, chart] => (name.as_str(), chart),
        _ => return Err("give a release name and a chart, or a chart alone".to_owned()),
    };
    let values = values(args)?;
    name::check(name)?;
    let chart = Chart::load_path(path.as_ref(), &Limits::default()).map_err(|error| error.to_string())?;
    let deprecated = chart.metadata().deprecated;
    let compiled = Compiled::new(chart).map_err(|error| error.to_string())?;
    let mut capabilities = Capabilities::default();
    capabilities.api_versions.extend(args.api_versions.iter().cloned());
    if let Some(version) = args.kube_version.as_ref().filter(|version| !version.is_empty()) {
        Capabilities::check_kube_version(version)?;
        capabilities.kube_version.clone_from(version);
    }
    let request = RenderRequest {
        release: Release {
            name: name.to_owned(),
            namespace: args.namespace.clone(),
            revision: 1,
            is_install: !args.is_upgrade,
        },
        values,
        set: sets(args)?,
        capabilities,
        seed: args.seed.as_deref().map(seed),
        now: args.now,
        skip_crds: !args.include_crds,
        skip_schema: args.skip_schema_validation,
        sub_notes: args.render_subchart_notes,
        ..RenderRequest::default()
    };
    let rendered = compiled
        .render(&request)
        .map_err(|error| format!("{error}\n\nUse --debug flag to render out invalid YAML"))?;
    let mut log = std::io::stderr().lock();
    if deprecated {
        let _ = writeln!(log, "WARNING: This chart is deprecated");
    }
    for warning in &rendered.warnings {
        let _ = writeln!(log, "WARNING: {warning}");
    }
    if let Some(folder) = &args.output_dir {
        return output::files(&rendered, args, folder, name);
    }
    let mut text = output::stream(&rendered, args)?;
    if let (true, Some(notes)) = (args.notes, &rendered.notes) {
        text.push_str(notes);
    }
    std::io::stdout().write_all(text.as_bytes()).map_err(|error| format!("standard output: {error}"))
}

/// The values files, later ones over earlier ones.
fn values(args: &Template) -> Result<Value, String> {
    let mut values = Value::Object(serde_json::Map::new());
    for path in &args.values {
        let text = read(path)?;
        match yaml::to_values(text.as_slice()) {
            Ok(Value::Null) => {}
            Ok(file @ Value::Object(_)) => merge_values(&mut values, file),
            Ok(_) => return Err(format!("failed to parse {path}: it holds no mapping")),
            Err(error) => {
                return Err(format!("failed to parse {path}: error converting YAML to JSON: {error}"));
            }
        }
    }
    Ok(values)
}

/// The assignments, in the order in which Helm applies the flags.
fn sets(args: &Template) -> Result<Vec<Set>, String> {
    let mut sets: Vec<Set> = args.set_json.iter().cloned().map(Set::Json).collect();
    sets.extend(args.set.iter().cloned().map(Set::Typed));
    sets.extend(args.set_string.iter().cloned().map(Set::Text));
    for assignments in &args.set_file {
        sets.push(Set::File(assignments.clone(), files_of(assignments)?));
    }
    sets.extend(args.set_literal.iter().cloned().map(Set::Literal));
    Ok(sets)
}

/// The files that assignments of `--set-file` name.
fn files_of(assignments: &str) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut files = BTreeMap::new();
    // Where the texts go is the render's business; here only the names of the files are of interest.
    strvals::parse_file_into(assignments, &Map::default(), &mut |path| {
        if !files.contains_key(path) {
            files.insert(path.to_owned(), read(path)?);
        }
        Ok(GoValue::Nil)
    })
    .map_err(|error| format!("failed parsing --set-file data: {error}"))?;
    Ok(files)
}

fn read(path: &str) -> Result<Vec<u8>, String> {
    let mut text = Vec::new();
    if path.trim() == "-" {
        let stdin = std::io::stdin().take(MAX_VALUES + 1).read_to_end(&mut text);
        stdin.map_err(|error| format!("read /dev/stdin: {}", words(&error)))?;
    } else {
        let file = std::fs::File::open(path).map_err(|error| format!("open {path}: {}", words(&error)))?;
        let read = file.take(MAX_VALUES + 1).read_to_end(&mut text);
        read.map_err(|error| format!("read {path}: {}", words(&error)))?;
    }
    if u64::try_from(text.len()).is_ok_and(|len| len > MAX_VALUES) {
        return Err(format!("{path} has more than {MAX_VALUES} bytes"));
    }
    Ok(text)
}

/// The words Helm has for an error of the system: no number behind, and no capital in front.
fn words(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_lowercase().chain(letters).collect())
}

/// A seed of any text: its bytes, folded to the length seeds have.
fn seed(text: &str) -> [u8; 32] {
    use sha2::Digest;
    sha2::Sha256::digest(text.as_bytes()).into()
}
