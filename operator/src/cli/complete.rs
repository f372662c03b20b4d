//! Completes command lines: commands, flags and values from the definition of the command line, names from the hub. kubectl asks a
//! program `kubectl_complete-emco` for the words that may come next, in the form that Cobra gave it, and shells ask the same.

use clap::{Arg, Command, CommandFactory as _};

use super::args::{Args, Shell};
use super::print;

mod names;
mod scripts;

use names::{Line, Names};

/// Cobra's word for: these, and no file names.
const NO_FILES: &str = ":4";
/// Cobra's word for: file names.
const FILES: &str = ":0";
/// Words that are offered.
const MOST: usize = 500;

/// Prints a script.
pub fn script(shell: Shell) -> anyhow::Result<()> {
    print(scripts::script(shell))
}

/// Prints what may stand in the place of the last word.
pub async fn words(words: &[String]) -> anyhow::Result<()> {
    let Candidates { mut words, end, names } = candidates(words);
    if let Some(wanted) = names {
        let found = names::find(wanted.names, &wanted.line).await;
        let begun = found.into_iter().filter(|name| name.starts_with(&wanted.begun));
        words.extend(begun.map(|name| format!("{}{name}", wanted.before)));
    }
    let lines: String = words.iter().take(MOST).map(|word| format!("{word}\n")).collect();
    print(&format!("{lines}{end}\n"))
}

/// What may stand in the place of a word.
struct Candidates {
    words: Vec<String>,
    end: &'static str,
    /// Names that only the hub knows.
    names: Option<Wanted>,
}

/// Names that are asked for.
struct Wanted {
    names: Names,
    /// Before each of them: `--cluster=`.
    before: String,
    /// How they begin.
    begun: String,
    line: Line,
}

fn candidates(words: &[String]) -> Candidates {
    let mut root = Args::command();
    root.build();
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut command = &root;
    let mut open: Option<&Arg> = None;
    let mut line = Line::default();
    let mut passed = false;
    for word in before {
        if let Some(arg) = open.take() {
            line.flags.insert(arg.get_long().unwrap_or_default().to_owned(), word.clone());
        } else if word == "--" {
            passed = true;
        } else if word.starts_with('-') {
            let arg = flag(command, word).filter(|arg| takes_value(arg));
            // `--flag=value` brings its value along.
            match (arg, word.split_once('=')) {
                (Some(arg), Some((_, value))) => {
                    line.flags.insert(arg.get_long().unwrap_or_default().to_owned(), value.to_owned());
                }
                (arg, _) => open = arg,
            }
        } else if let Some(below) = command.find_subcommand(word).filter(|_| line.words.is_empty()) {
            command = below;
        } else {
            line.words.push(word.clone());
        }
    }
    if let Some(arg) = open {
        return values(arg, "", last, line);
    }
    let none = |words| Candidates { words, end: NO_FILES, names: None };
    // What is another program's to know.
    let place = line.words.len();
    if passed || command.get_positionals().take(place).any(clap::Arg::is_trailing_var_arg_set) {
        return none(Vec::new());
    }
    if let Some((name, begun)) = last.split_once('=').filter(|_| last.starts_with("--")) {
        return match flag(command, name) {
            Some(arg) => values(arg, &format!("{name}="), begun, line),
            None => none(Vec::new()),
        };
    }
    let starts = |text: &String| text.starts_with(last);
    if last.starts_with('-') {
        let flags = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let mut found: Vec<String> =
            flags.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).filter(starts).collect();
        found.sort();
        return none(found);
    }
    let below = command.get_subcommands().filter(|below| !below.is_hide_set() && place == 0);
    let mut found: Vec<String> = below.map(|below| below.get_name().to_owned()).filter(starts).collect();
    if command.get_name() == "reconcile" {
        return reconcile(last, line);
    }
    match command.get_positionals().nth(place) {
        Some(arg) => {
            let mut after = values(arg, "", last, line);
            found.append(&mut after.words);
            Candidates { words: found, ..after }
        }
        None => none(found),
    }
}

/// A kind, or a name of the kind before it.
fn reconcile(last: &str, line: Line) -> Candidates {
    const KINDS: [&str; 3] = ["dig", "capp", "cluster"];
    let (kinds, names) = match line.words.first().map(String::as_str) {
        None => (&KINDS[..], Some(Names::Deployments)),
        Some("cluster" | "ecl") => (&[][..], Some(Names::Clusters)),
        Some("capp" | "compositeapp") => (&[][..], Some(Names::CompositeApps)),
        Some("dig" | "deployment" | "deploymentintentgroup") => (&[][..], Some(Names::Deployments)),
        Some(_) => (&[][..], None),
    };
    let names = names.filter(|_| line.words.len() < 2);
    let words = kinds.iter().filter(|kind| kind.starts_with(last)).map(|&kind| kind.to_owned()).collect();
    let wanted = |names| Wanted { names, before: String::new(), begun: last.to_owned(), line };
    Candidates { words, end: NO_FILES, names: names.map(wanted) }
}

fn flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let word = word.split('=').next().unwrap_or_default();
    command.get_arguments().find(|arg| {
        word.strip_prefix("--").is_some_and(|long| arg.get_long() == Some(long))
            || word
                .strip_prefix('-')
                .is_some_and(|short| arg.get_short().is_some_and(|c| short == c.to_string()))
    })
}

fn takes_value(arg: &Arg) -> bool {
    arg.get_action().takes_values()
}

fn values(arg: &Arg, before: &str, begun: &str, line: Line) -> Candidates {
    let possible = arg.get_possible_values();
    let possible =
        possible.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name().to_owned());
    let words: Vec<String> =
        possible.filter(|name| name.starts_with(begun)).map(|name| format!("{before}{name}")).collect();
    let end = if is_shown_as(arg, "FILE") || is_shown_as(arg, "DIR") { FILES } else { NO_FILES };
    let wanted = |names| Wanted { names, before: before.to_owned(), begun: begun.to_owned(), line };
    Candidates { words, end, names: names_of(arg).map(wanted) }
}

fn is_shown_as(arg: &Arg, name: &str) -> bool {
    arg.get_value_names().is_some_and(|names| names.iter().any(|one| one.as_str() == name))
}

/// What the value of an argument names.
fn names_of(arg: &Arg) -> Option<Names> {
    match arg.get_id().as_str() {
        _ if is_shown_as(arg, "PROVIDER/CLUSTER") => Some(Names::Clusters),
        _ if is_shown_as(arg, "DEPLOYMENT") => Some(Names::Deployments),
        "provider" => Some(Names::Providers),
        "namespace" => Some(Names::Namespaces),
        "app" => Some(Names::Apps),
        "revision" => Some(Names::Revisions),
        "context" | "edge_context" | "hub_context" => Some(Names::Contexts),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(line: &[&str]) -> (Vec<String>, &'static str) {
        let found = candidates(&line.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        (found.words, found.end)
    }

    fn names(line: &[&str]) -> Option<(Names, String, String)> {
        let found = candidates(&line.iter().map(|&word| word.to_owned()).collect::<Vec<_>>());
        found.names.map(|wanted| (wanted.names, wanted.before, wanted.begun))
    }

    #[test]
    fn names_are_asked_for_where_a_name_may_stand() {
        let of = |names, before: &str, begun: &str| Some((names, before.to_owned(), begun.to_owned()));
        assert_eq!(names(&["status", "sh"]), of(Names::Deployments, "", "sh"));
        assert_eq!(names(&["get", "shop/till", "--cluster", ""]), of(Names::Clusters, "", ""));
        assert_eq!(names(&["get", "shop/till", "--cluster=ac"]), of(Names::Clusters, "--cluster=", "ac"));
        assert_eq!(names(&["cluster", "drain", "ac"]), of(Names::Clusters, "", "ac"));
        assert_eq!(names(&["cluster", "rotate", "ac"]), of(Names::Clusters, "", "ac"));
        assert_eq!(names(&["uninstall", "--give-up", ""]), of(Names::Clusters, "", ""));
        assert_eq!(names(&["adopt", "sh"]), of(Names::Deployments, "", "sh"));
        assert_eq!(names(&["adopt", "shop/till", "--app", ""]), of(Names::Apps, "", ""));
        assert_eq!(names(&["reconcile", "cluster", ""]), of(Names::Clusters, "", ""));
        assert_eq!(names(&["reconcile", "capp", ""]), of(Names::CompositeApps, "", ""));
        assert_eq!(names(&["reconcile", ""]), of(Names::Deployments, "", ""));
        assert_eq!(complete(&["reconcile", "c"]).0, ["capp", "cluster"]);
        assert_eq!(names(&["clusters", "--provider", ""]), of(Names::Providers, "", ""));
        assert_eq!(names(&["diff", "till", "--revision", ""]), of(Names::Revisions, "", ""));
        assert_eq!(names(&["test", "shop/till", "--app", ""]), of(Names::Apps, "", ""));
        assert_eq!(names(&["status", "--context", "h"]), of(Names::Contexts, "", "h"));
        // What kubectl is asked on a cluster is kubectl's to know.
        assert_eq!(names(&["edge", ""]), of(Names::Clusters, "", ""));
        assert_eq!(names(&["edge", "acme/berlin", "get", ""]), None);
        assert_eq!(names(&["exec", "shop/till", "--", ""]), None);
        assert_eq!(names(&["status", "shop/till", ""]), None);
    }

    #[test]
    fn commands_flags_and_values_are_completed() {
        assert_eq!(complete(&["st"]).0, ["status"]);
        assert_eq!(
            complete(&["cluster", ""]).0,
            ["add", "cordon", "uncordon", "drain", "rotate", "remove", "help"]
        );
        assert_eq!(complete(&["status", "--w"]).0, ["--watch"]);
        assert_eq!(complete(&["status", "--state", "Un"]).0, ["Unreachable", "Unknown"]);
        assert_eq!(complete(&["status", "--state=Re"]).0, ["--state=Ready", "--state=Removing"]);
        assert_eq!(complete(&["adopt", "x", "--conflicts", "Ad"]).0, ["AdoptIfSame", "Adopt"]);
        assert_eq!(complete(&["clusters", "-o", ""]).0, ["wide", "json", "yaml"]);
        assert_eq!(complete(&["completion", "k"]).0, ["kubectl"]);
    }

    #[test]
    fn files_are_completed_where_a_file_is_wanted() {
        assert_eq!(complete(&["status", "--kubeconfig", ""]), (Vec::new(), FILES));
        assert_eq!(complete(&["status", "--context", ""]), (Vec::new(), NO_FILES));
        assert_eq!(complete(&["chart", "push", ""]), (Vec::new(), FILES));
    }

    #[test]
    fn what_is_hidden_is_not_offered() {
        assert!(!complete(&[""]).0.iter().any(|word| word.starts_with("__")));
    }
}
