//! Checks that every command exists which the operator, the command line, the charts and the book name: against the real command
//! lines, those of kubectl included, and against the kinds of a real hub.

mod soak;
mod text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use clap::error::ErrorKind;
use emco_e2e::bed::{Bed, BedSpec};
use emco_e2e::operator::root;
use emco_e2e::programs::{Program, Programs};

use text::{all, resources, words};

/// Why a command line of ours is not understood; nothing where it is. `named`: a page may name a command without what it needs,
/// while a message has to be complete.
fn refused<P: clap::Parser>(words: &[String], named: bool) -> Option<String> {
    let error = P::try_parse_from(words).err()?;
    let fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument => named,
        _ => false,
    };
    (!fine).then(|| error.to_string())
}

/// What krew was asked for by `make soak STEP=messages`: building it takes a minute, and few commands are krew's.
const OF_KREW: (&str, [&str; 2]) = ("install", ["--manifest", "--archive"]);

/// Why a command of krew is none of those.
fn not_asked_of_krew(words: &[String]) -> Option<String> {
    let (verb, flags) = OF_KREW;
    let known = |word: &String| flags.contains(&word.split('=').next().unwrap_or_default());
    let fine = words.get(2).is_some_and(|word| word == verb) && words[3..].iter().all(known);
    (!fine)
        .then(|| "krew was not asked for it: add it to OF_KREW, and run `make soak STEP=messages`".to_owned())
}

/// kubectl's own judgement, or that of a plug-in: its help for exactly these words, of which the first is what it is `called`.
fn kubectl(program: &Path, called: &str, words: &[String]) -> Result<Option<String>> {
    // Positions do not matter to help, and a flag or subcommand that does not exist is an error all the same.
    let output = std::process::Command::new(program)
        .args(&words[1..])
        .arg("--help")
        .env_clear()
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .with_context(|| program.display().to_string())?;
    let said =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    // A word that is no verb gets the help of kubectl itself.
    let verb = |word: &String| said.contains(&format!("\n  {called} {word}"));
    let found = output.status.success() && said.contains("Usage:") && words.iter().skip(1).any(verb);
    Ok((!found).then_some(said))
}

#[tokio::test]
async fn every_command_that_a_message_or_a_page_names_is_a_real_one() {
    let programs = Programs::get(&[Program::Kubectl]).await.unwrap();
    let kubectl_program = programs.path(Program::Kubectl).unwrap();
    let verbs = verbs(kubectl_program).unwrap();
    let all = all(&verbs);
    let mut wrong = Vec::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (command, places) in &all {
        let words = words(command);
        let named = places
            .iter()
            .all(|place| Path::new(place).extension().is_some_and(|extension| extension == "md"));
        let (which, why) = match words.first().map(String::as_str) {
            _ if words.len() < 2 => continue,
            Some("emco-operator") => ("operator", refused::<emco_operator::args::Args>(&words, named)),
            Some("kubectl-emco") => ("emco", refused::<emco_operator::cli::args::Args>(&words, named)),
            _ if words[1] == "emco" && words.len() == 2 => continue,
            _ if words[1] == "emco" => {
                ("emco", refused::<emco_operator::cli::args::Args>(&words[1..], named))
            }
            _ if words[1] == "krew" => ("krew", not_asked_of_krew(&words)),
            _ => ("kubectl", kubectl(kubectl_program, "kubectl", &words).unwrap()),
        };
        *counts.entry(which).or_default() += 1;
        wrong.extend(why.map(|why| format!("{places:?}: {command}\n{why}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for (which, least) in [("kubectl", 8), ("operator", 3), ("emco", 5), ("krew", 1)] {
        assert!(
            counts.get(which).is_some_and(|count| *count >= least),
            "{which}: {counts:?} of {:?}",
            all.keys()
        );
    }
}

/// What kubectl can do, plug-ins included: what its own help lists.
fn verbs(program: &Path) -> Result<BTreeSet<String>> {
    let output = std::process::Command::new(program).arg("--help").env_clear().output()?;
    let help = String::from_utf8(output.stdout)?;
    let listed = help.lines().filter_map(|line| {
        let (verb, about) = line.strip_prefix("  ")?.split_once("  ")?;
        let word = verb.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !verb.is_empty();
        (word && !about.trim().is_empty()).then(|| verb.to_owned())
    });
    let verbs: BTreeSet<String> = listed.chain(["emco".to_owned()]).collect();
    ensure!(verbs.contains("annotate") && verbs.len() > 30, "the help of kubectl is read wrongly: {verbs:?}");
    Ok(verbs)
}

/// All names of all kinds of the hub, ours among them.
async fn kinds(bed: &Bed) -> Result<BTreeSet<String>> {
    let listed = bed.hub().kubectl().run(&["api-resources", "--no-headers"]).await?;
    let mut names = BTreeSet::new();
    for line in listed.lines() {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [name, short @ .., version, _namespaced, kind] = &columns[..] else { continue };
        let group = version.split_once('/').map(|(group, _)| group);
        names.extend(short.iter().flat_map(|short| short.split(',')).map(str::to_owned));
        for name in [(*name).to_owned(), kind.to_lowercase()] {
            names.extend(group.map(|group| format!("{name}.{group}")));
            names.insert(name);
        }
    }
    Ok(names)
}

/// Objects that have the names which stand where a message fills in names.
const FILLED_IN: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: x}
---
apiVersion: emco.io/v1alpha1
kind: Cluster
metadata: {name: x, namespace: x}
spec: {access: {kubeconfigSecretRef: {name: x}}}
---
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {name: x, namespace: x}
spec: {compositeAppRef: {name: x}, placement: {allOf: [{selector: {}}]}}
---
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: x, namespace: x}
spec: {level: Admin}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: x, namespace: x}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: x}
";

#[tokio::test]
async fn the_kinds_that_commands_name_are_there_and_what_messages_annotate_can_be_annotated() {
    let bed = Bed::start(BedSpec::bare_hub()).await.unwrap();
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        let crds = root().join("config/crd").display().to_string();
        kubectl.run(&["apply", "--server-side", "-k", &crds]).await?;
        kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).await?;
        kubectl.apply(FILLED_IN).await?;
        let (kinds, all) = (kinds(&bed).await?, all(&verbs(kubectl.program())?));
        let (mut looked_at, mut tried) = (0, BTreeSet::new());
        for (command, places) in &all {
            let words = words(command);
            if words.first().is_none_or(|first| first != "kubectl") {
                continue;
            }
            for kind in resources(&words) {
                // A kind that a message fills in is one of those that it is made for.
                let filled_in = places.iter().all(|place| is_source(place)) && kind == "x";
                ensure!(filled_in || kinds.contains(kind), "{places:?}: there is no {kind}: {command}");
                looked_at += 1;
            }
            let changes = ["annotate", "label"].contains(&words[1].as_str());
            if changes && places.iter().any(|place| is_source(place)) {
                let kind = if words[2] == "x" { "dig" } else { words[2].as_str() };
                let mut args = vec![words[1].as_str(), kind, "--dry-run=server"];
                args.extend(words[3..].iter().map(String::as_str));
                kubectl.run(&args).await.with_context(|| format!("{places:?}: {command}"))?;
                tried.insert(command);
            }
        }
        ensure!(looked_at > 40 && tried.len() > 3, "{looked_at} kinds looked at, {tried:?} tried");
        Ok(())
    })
    .await;
}

fn is_source(place: &str) -> bool {
    Path::new(place).extension().is_some_and(|extension| extension == "rs")
}
