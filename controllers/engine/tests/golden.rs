//! Plans cases in YAML: intents, clusters and charts on one side, who gets what on the other. Start reading here.
//!
//! Each file of `tests/cases` is one case; `common` says what it may hold. The answer is kept beside it as a snapshot.

mod common;

use std::fmt::Write as _;

use common::Case;
use emco_engine::plan::Plan;
use emco_engine::refusal::Refusal;

#[test]
fn every_case_gives_the_plan_that_is_written_down() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "yaml"))
        .collect();
    names.sort();
    assert!(!names.is_empty(), "no case in {folder}");
    for path in names {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let case = Case::parse(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let answer = match case.plan() {
            Ok(plan) => show(&plan),
            Err(refusal) => show_refusal(&refusal),
        };
        insta::with_settings!({snapshot_path => "cases", prepend_module_to_snapshot => false, omit_expression => true}, {
            insta::assert_snapshot!(name.as_str(), answer);
        });
    }
}

fn show_refusal(refusal: &Refusal) -> String {
    let Refusal { condition, reason, message, stalled } = refusal;
    let who = if *stalled { "Stalled" } else { "Reconciling" };
    format!("{condition}=False {reason} ({who})\n{message}\n")
}

fn show(plan: &Plan) -> String {
    let mut out = String::new();
    for (app, placement) in &plan.placement {
        let chosen: Vec<_> = placement.chosen.iter().map(ToString::to_string).collect();
        writeln!(out, "{app} on {}", chosen.join(", ")).unwrap();
        for rejected in &placement.rejected {
            writeln!(
                out,
                "  not {} ({}): {} needs {}",
                rejected.clusters, rejected.reason, rejected.example, rejected.needs
            )
            .unwrap();
        }
    }
    if let Some(change) = &plan.change {
        writeln!(out, "{}: {}", change.cause.as_str(), change.summary).unwrap();
    }
    for warning in &plan.warnings {
        writeln!(out, "warning: {warning}").unwrap();
    }
    for remark in plan.remarks.iter().flat_map(|of| &of.sentences) {
        writeln!(out, "remark: {remark}").unwrap();
    }
    for (cluster, apps) in &plan.waiting {
        writeln!(out, "waiting: {cluster} for {}", apps.join(", ")).unwrap();
    }
    for (cluster, apps) in &plan.assignment {
        for (app, assigned) in apps {
            writeln!(out, "\n{cluster} {app}, release revision {}", assigned.release_revision).unwrap();
            // What the chart tests itself with comes last.
            let tests = assigned.tests.as_ref().and_then(|tests| tests.set.as_ref());
            for manifest in
                [Some(&assigned.set), tests].into_iter().flatten().flat_map(|set| &plan.sets[set].manifests)
            {
                let mut notes = vec![format!("{:?}", manifest.phase)];
                notes.extend(
                    manifest.hook.as_ref().map(|hook| format!("{} {}", hook.events.join(","), hook.weight)),
                );
                notes.extend(manifest.keep.then(|| "keep".to_owned()));
                notes.extend(manifest.crd_folder.then(|| "crds/".to_owned()));
                notes.extend(manifest.edited_by.iter().cloned());
                writeln!(out, "  {} [{}]", manifest.identity(), notes.join(", ")).unwrap();
                let mut content = manifest.json.clone();
                for field in ["apiVersion", "kind"] {
                    content.as_object_mut().unwrap().remove(field);
                }
                let metadata = content["metadata"].as_object_mut().unwrap();
                metadata.remove("name");
                metadata.remove("namespace");
                if metadata.is_empty() {
                    content.as_object_mut().unwrap().remove("metadata");
                }
                writeln!(out, "    {content}").unwrap();
            }
        }
    }
    out
}
