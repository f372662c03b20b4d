//! In: the pages people read, the samples of the demo. Out: whether what they show is true.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use emco_crds::kinds::{self, Row};
use emco_crds::reasons;
use emco_e2e::bed::{BedSpec, SharedBed};
use emco_e2e::package::Package;
use serde::Deserialize as _;
use serde_json::Value;

static BED: SharedBed = SharedBed::new(BedSpec::bare_hub);

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// README and all pages of the book.
fn pages() -> BTreeMap<PathBuf, String> {
    let mut pages = BTreeMap::from([(root().join("README.md"), String::new())]);
    for folder in ["docs", "docs/decisions", "docs/reference"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                pages.insert(path, String::new());
            }
        }
    }
    for (path, text) in &mut pages {
        *text = std::fs::read_to_string(path).unwrap();
    }
    pages
}

#[test]
fn the_minimum_version_of_kubernetes_is_the_same_wherever_it_is_said() {
    let mut versions = BTreeSet::new();
    for text in pages().into_values() {
        for (at, _) in text.match_indices(" or later that holds the objects") {
            versions.insert(text[..at].rsplit(' ').next().unwrap_or_default().to_owned());
        }
    }
    let [version] = versions.iter().collect::<Vec<_>>()[..] else { panic!("the pages say {versions:?}") };
    for chart in ["charts/emco", "charts/emco-crds"] {
        let text = std::fs::read_to_string(root().join(chart).join("Chart.yaml")).unwrap();
        assert!(text.contains(&format!("kubeVersion: \">={version}.0-0\"")), "{chart}: {text}");
    }
    // The default of an older k3d is an older Kubernetes.
    let page = std::fs::read_to_string(root().join("docs/k3d.md")).unwrap();
    let minor = |version: &str| version.split('.').nth(1).and_then(|minor| minor.parse::<u32>().ok());
    for line in page.lines().filter(|line| line.starts_with("$ k3d cluster create ")) {
        let (_, image) = line.split_once(" --image rancher/k3s:v").unwrap_or_else(|| panic!("{line}"));
        assert!(minor(image) >= minor(version), "{line}");
    }
}

/// Pages among the decisions that record figures, and one that lists small choices.
const NO_CHOICES: [&str; 3] = ["latency.md", "waiting.md", "api-shapes.md"];

#[test]
fn every_decision_has_a_date_alternatives_and_a_price() {
    let mut checked = 0;
    for (path, text) in pages() {
        if !path.parent().is_some_and(|folder| folder.ends_with("decisions")) {
            continue;
        }
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let second = text.lines().nth(2).unwrap_or_default();
        assert!(second.starts_with("Date: ") && second.contains(". Status: "), "{name}: {second}");
        if NO_CHOICES.contains(&name) {
            continue;
        }
        for part in ["## Context", "## Decision", "## Alternatives", "## Price"] {
            assert!(text.lines().any(|line| line == part), "{name} has no {part}");
        }
        checked += 1;
    }
    assert!(checked > 10, "{checked} decisions");
}

/// The fenced blocks of a language.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Option<(bool, String)> = None;
    for line in text.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(name)) => open = Some((name.trim() == language, String::new())),
            (Some((wanted, block)), Some(_)) => {
                if *wanted {
                    found.push(std::mem::take(block));
                }
                open = None;
            }
            (Some((_, block)), None) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// The targets of links to files.
fn links(text: &str) -> Vec<String> {
    // A pattern between backticks may look like a link.
    let without_code = |line: &str| line.split('`').step_by(2).collect::<String>();
    let text: String = text.lines().map(without_code).collect();
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    targets
        .filter(|target| !target.is_empty() && !target.contains("://") && !target.starts_with('#'))
        .map(str::to_owned)
        .collect()
}

/// What stands of a kind at a place.
type Naming = fn(&Row) -> String;

/// Where the book names every kind, and what stands there.
const NAMING: [(&str, Naming); 4] = [
    ("docs/SUMMARY.md", |row| format!("- [{}](reference/{}.md)", row.kind, row.kind.to_lowercase())),
    ("docs/concepts.md", |row| format!("| {} | `", row.kind)),
    ("docs/troubleshooting.md", |row| format!("\n## {}\n", row.kind)),
    ("docs/rights.md", |row| format!("`{}/status`", row.plural())),
];

#[test]
fn every_kind_of_the_table_has_its_places_in_the_book() {
    let mut missing = Vec::new();
    for (page, naming) in NAMING {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let lines = kinds::ALL.iter().map(naming).filter(|line| !text.contains(line.as_str()));
        missing.extend(lines.map(|line| format!("{page} lacks {line:?}")));
    }
    assert_eq!(missing, Vec::<String>::new());
}

fn names<T: Copy + Into<&'static str>>(all: &[T]) -> BTreeSet<&'static str> {
    all.iter().map(|reason| (*reason).into()).collect()
}

#[test]
fn every_reason_has_its_line_and_every_line_is_a_reason() {
    let wanted = BTreeMap::from([
        ("ClusterProvider", names(reasons::ClusterProviderReason::ALL)),
        ("GitTarget", names(reasons::GitTargetReason::ALL)),
        ("Cluster", names(reasons::ClusterReason::ALL)),
        ("Project", names(reasons::ProjectReason::ALL)),
        ("LogicalCloud", names(reasons::LogicalCloudReason::ALL)),
        ("CompositeApp", names(reasons::CompositeAppReason::ALL)),
        ("CompositeProfile", names(reasons::CompositeProfileReason::ALL)),
        ("GenericActionIntent", names(reasons::GenericActionIntentReason::ALL)),
        ("HardwareIntent", names(reasons::HardwareIntentReason::ALL)),
        ("TrafficGroupIntent", names(reasons::TrafficGroupIntentReason::ALL)),
        ("DeploymentIntentGroup", names(reasons::DeploymentIntentGroupReason::ALL)),
        ("DeploymentApproval", names(reasons::DeploymentApprovalReason::ALL)),
        ("DeploymentView", names(reasons::DeploymentViewReason::ALL)),
        ("AppContext", names(reasons::AppContextReason::ALL)),
        ("SyncShard", names(reasons::SyncShardReason::ALL)),
    ]);
    let text = std::fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    let found: BTreeMap<&str, BTreeSet<&str>> = text
        .split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
        .map(|(kind, section)| {
            let lines = section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
            // A line that says nothing is no line.
            (kind.trim(), lines.filter(|(_, text)| text.len() > 20).map(|(reason, _)| reason).collect())
        })
        // Other sections tell what is in no table.
        .filter(|(_, reasons): &(&str, BTreeSet<&str>)| !reasons.is_empty())
        .collect();
    assert_eq!(found, wanted);
}

/// Where the reasons of a kind are given.
const GIVEN_IN: [(&str, &str); 2] = [
    ("AppContext", "controllers/src/store/outcome.rs"),
    ("LogicalCloud", "controllers/src/reconcile/logical_cloud.rs"),
];

#[test]
fn a_reason_that_is_given_is_not_called_reserved() {
    let text = std::fs::read_to_string(root().join("docs/troubleshooting.md")).unwrap();
    for (kind, file) in GIVEN_IN {
        let (_, section) = text.split_once(&format!("\n## {kind}\n")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        let source = std::fs::read_to_string(root().join(file)).unwrap();
        let reserved: Vec<&str> = section
            .lines()
            .filter(|line| line.contains("this version never gives it"))
            .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
            .collect();
        assert!(!reserved.is_empty(), "{kind}");
        for reason in reserved {
            assert!(!source.contains(&format!("\"{reason}\"")), "{file} gives {reason} of {kind}");
        }
    }
}

/// By kind, what the README says is refused: the fields of its list.
fn refused_by_readme(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let section = text.split("\n## What does not work yet\n").nth(1).unwrap();
    let section = section.split("\n## ").next().unwrap();
    let items = section.split("\n* **").skip(1).map(|item| item.split("\n\n").next().unwrap_or(item));
    let spans = |item: &str| item.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    items.map(|item| (item.split("**").next().unwrap_or_default().to_owned(), spans(item))).collect()
}

#[test]
fn the_readme_lists_exactly_what_is_not_supported_yet() {
    let mut wanted: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for later in emco_crds::later::ALL {
        let fields = wanted.entry(later.kind.to_owned()).or_default();
        fields.insert(later.path.trim_start_matches("spec.").to_owned());
    }
    let text = std::fs::read_to_string(root().join("README.md")).unwrap();
    assert_eq!(refused_by_readme(&text), wanted);
}

#[test]
fn every_link_leads_to_a_file_and_the_book_lists_every_page() {
    for (page, text) in pages() {
        for link in links(&text) {
            let file = link.split('#').next().unwrap_or_default();
            let target = page.parent().unwrap().join(file);
            assert!(target.exists(), "{}: {link} leads nowhere", page.display());
        }
    }
    let docs = root().join("docs");
    let summary = std::fs::read_to_string(docs.join("SUMMARY.md")).unwrap();
    let listed: BTreeSet<PathBuf> = links(&summary).into_iter().map(|link| docs.join(link)).collect();
    let written: BTreeSet<PathBuf> =
        pages().into_keys().filter(|page| page.starts_with(&docs) && !page.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, written);
}

/// Those for Flux and Argo CD, and Prometheus's own file, are run by `gitops` and `observability`; here they have what each needs.
#[test]
fn examples_of_other_peoples_objects_are_whole() {
    let mut seen = BTreeSet::new();
    for (page, text) in pages() {
        for block in blocks(&text, "yml") {
            let object: Value =
                serde_yaml::from_str(&block).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
            let Some(kind) = object["kind"].as_str() else { continue };
            for part in ["/apiVersion", "/metadata/name", "/metadata/namespace", "/spec"] {
                assert!(object.pointer(part).is_some(), "{}: {kind} has no {part}", page.display());
            }
            seen.insert(kind.to_owned());
        }
    }
    assert_eq!(seen, ["Application", "Kustomization"].map(str::to_owned).into());
}

/// Tests that run the commands of a page, which are not among those that follow pages.
const RUN_BY: [(&str, &str); 1] = [("dashboard.md", "dashboard/input.rs")];

/// A command of a page that is shown as if it were none: a line after a prompt in a block of another language, or a script.
fn is_hidden(text: &str) -> Option<String> {
    let scripts = ["sh", "bash", "shell"].into_iter().flat_map(|language| blocks(text, language));
    let shown =
        blocks(text, "text").into_iter().filter(|block| block.lines().any(|line| line.starts_with("$ ")));
    scripts.chain(shown).next()
}

/// Those that follow a page fail where it has a command that they do not run.
#[test]
fn every_page_with_commands_is_followed_by_a_test() {
    let tests = root().join("e2e/tests");
    let mut followers = String::new();
    for entry in std::fs::read_dir(tests.join("pages")).unwrap() {
        followers.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    let mut followed = 0;
    for (path, text) in pages() {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        // Its commands are targets of make.
        if name == "README.md" {
            continue;
        }
        assert_eq!(is_hidden(&text), None, "{name}: show commands in blocks of the language console");
        if !text.lines().any(|line| line.trim_start() == "```console") {
            continue;
        }
        let elsewhere = RUN_BY.iter().find(|(page, _)| *page == name);
        let source = elsewhere.map(|(_, test)| std::fs::read_to_string(tests.join(test)).unwrap());
        let named = source.as_ref().unwrap_or(&followers).contains(name);
        assert!(named, "no test runs the commands of {name}: follow it in e2e/tests/pages");
        followed += 1;
    }
    assert!(followed > 15, "only {followed} pages have commands");
}

#[test]
fn every_make_target_that_is_named_exists() {
    let makefile = std::fs::read_to_string(root().join("Makefile")).unwrap();
    let targets: BTreeSet<&str> =
        makefile.lines().filter_map(|line| line.split_once(": ")).map(|(target, _)| target).collect();
    let mut seen = 0;
    for (page, text) in pages() {
        let commands = blocks(&text, "console").into_iter().flat_map(|block| {
            let commands = block.lines().filter_map(|line| line.strip_prefix("$ make ").map(str::to_owned));
            commands.collect::<Vec<_>>()
        });
        let inline = text.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("make "));
        for command in commands.chain(inline.map(str::to_owned)) {
            let target = command.split_whitespace().next().unwrap_or_default();
            assert!(targets.contains(target), "{}: make {target}", page.display());
            seen += 1;
        }
    }
    assert!(seen > 5, "only {seen} commands were found");
}

#[test]
fn the_demo_names_charts_that_are_there() {
    let charts = root().join("config/samples/charts");
    let files: BTreeSet<String> = std::fs::read_dir(charts)
        .unwrap()
        .map(|entry| Package::of_folder(&entry.unwrap().path()).unwrap().file_name())
        .collect();
    let text = std::fs::read_to_string(root().join("config/samples/demo/2-shop.yaml")).unwrap();
    let named: BTreeSet<String> = serde_yaml::Deserializer::from_str(&text)
        .map(|document| Value::deserialize(document).unwrap())
        .filter(|object| object["kind"] == "CompositeApp")
        .flat_map(|object| object["spec"]["apps"].as_array().unwrap().clone())
        .map(|app| app["chart"]["configMapRef"]["key"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(named, files);
}

#[tokio::test]
async fn a_real_api_server_accepts_every_example() {
    let bed = BED.get().await.unwrap();
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        let crds = root().join("config/crd").display().to_string();
        kubectl.run(&["apply", "--server-side", "-k", &crds]).await?;
        kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).await?;
        for namespace in ["acme", "shop", "emco-system"] {
            kubectl.run(&["create", "namespace", namespace]).await?;
        }
        let mut examples = 0;
        for (page, text) in pages() {
            for block in blocks(&text, "yaml") {
                accepted(kubectl, &block).await.with_context(|| format!("{}:\n{block}", page.display()))?;
                examples += 1;
            }
        }
        anyhow::ensure!(examples >= 5, "only {examples} examples were found");
        for entry in std::fs::read_dir(root().join("config/samples/demo"))? {
            let file = entry?.path();
            accepted(kubectl, &std::fs::read_to_string(&file)?)
                .await
                .with_context(|| file.display().to_string())?;
        }
        Ok(())
    })
    .await;
}

/// Strictly: a field that does not exist is an error.
async fn accepted(kubectl: &emco_e2e::kubectl::Kubectl, yaml: &str) -> Result<()> {
    let args =
        ["apply", "--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts", "-f", "-"];
    kubectl.run_with(&args, yaml).await.map(drop)
}

#[test]
fn the_pages_that_are_checked_are_the_pages() {
    let pages = pages();
    for page in ["README.md", "docs/install.md", "docs/first-deployment.md", "docs/decisions/no-webhooks.md"]
    {
        assert!(pages.keys().any(|path| path.ends_with(Path::new(page))), "{page}");
    }
}
