//! Prints rendered documents in the layout of `helm template`.
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use emco_helm::{Document, HookEvent, Rendered};

use crate::args::Template;

/// The documents the flags leave.
fn chosen<'r>(rendered: &'r Rendered, args: &'r Template) -> impl Iterator<Item = &'r Document> {
    rendered.documents.iter().filter(|document| {
        let is_hook = !document.hook_events.is_empty();
        let is_test = document.hook_events.contains(&HookEvent::Test);
        let left_out = (document.crd && !args.include_crds)
            || (args.no_hooks && is_hook)
            || (args.skip_tests && is_test);
        !left_out
    })
}

fn print(document: &Document, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "---\n# Source: {}\n{}", document.source, document.text);
}

/// The whole output as one text.
pub fn stream(rendered: &Rendered, args: &Template) -> Result<String, String> {
    let (mut manifests, mut hooks) = (String::new(), String::new());
    for document in chosen(rendered, args) {
        print(document, if document.hook_events.is_empty() { &mut manifests } else { &mut hooks });
    }
    let all = format!("{}\n{hooks}", manifests.trim());
    if args.show_only.is_empty() { Ok(all) } else { show_only(&all, &args.show_only) }
}

/// The documents whose path inside the chart matches one of the patterns, in the order of the patterns.
fn show_only(all: &str, patterns: &[String]) -> Result<String, String> {
    let mut out = String::new();
    let documents = emco_helm::render::split(all);
    for pattern in patterns {
        let Some(matcher) = emco_helm::chart::shell_pattern(pattern) else {
            return Err(format!("syntax error in pattern {pattern}"));
        };
        let mut missing = true;
        for document in &documents {
            let source = document.lines().find_map(|line| line.strip_prefix("# Source: "));
            let Some((_, path)) = source.and_then(|source| source.split_once('/')) else { continue };
            if matcher.is_match(path) {
                let _ = writeln!(out, "---\n{document}");
                missing = false;
            }
        }
        if missing {
            return Err(format!("could not find template {pattern} in chart"));
        }
    }
    Ok(out)
}

/// Writes one file per template below a folder.
pub fn files(rendered: &Rendered, args: &Template, folder: &Path, release: &str) -> Result<(), String> {
    let folder: PathBuf = if args.release_name { folder.join(release) } else { folder.to_owned() };
    let mut written: Vec<PathBuf> = Vec::new();
    for document in chosen(rendered, args) {
        let path = folder.join(&document.source);
        let failed = |error: std::io::Error| format!("{}: {error}", path.display());
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let mut text = String::new();
        print(document, &mut text);
        let append = written.contains(&path);
        let mut file = std::fs::OpenOptions::new()
            .create(true)
            .write(true)
            .append(append)
            .truncate(!append)
            .open(&path)
            .map_err(failed)?;
        file.write_all(text.as_bytes()).map_err(failed)?;
        let _ = writeln!(std::io::stdout(), "wrote {}", path.display());
        written.push(path);
    }
    Ok(())
}
