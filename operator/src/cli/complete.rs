//! Completion: scripts for shells, and answers to kubectl, which asks a program `kubectl_complete-emco` for the words that may come
//! next, in the form that Cobra gave it.

use clap::{Arg, Command, CommandFactory as _};
use clap_complete::{Shell as Of, generate};

use super::args::{Args, Shell};
use super::print;

/// What shells complete.
const PROGRAM: &str = "kubectl-emco";
/// The program that kubectl looks for; a file in the PATH.
const FOR_KUBECTL: &str = "#!/bin/sh
# Save as kubectl_complete-emco in a folder of the PATH and make it executable: kubectl asks it to complete `kubectl emco`.
exec kubectl-emco __complete \"$@\"
";
/// Cobra's word for: these, and no file names.
const NO_FILES: &str = ":4";
/// Cobra's word for: file names.
const FILES: &str = ":0";

/// Prints a script.
pub fn script(shell: Shell) -> anyhow::Result<()> {
    let of = match shell {
        Shell::Bash => Of::Bash,
        Shell::Zsh => Of::Zsh,
        Shell::Fish => Of::Fish,
        Shell::Kubectl => return print(FOR_KUBECTL),
    };
    print(&script_for(of))
}

fn script_for(shell: Of) -> String {
    // The script for bash calls one function in two ways where a name has a hyphen, and completes nothing below a subcommand.
    let name = if shell == Of::Bash { "kubectl_emco" } else { PROGRAM };
    let mut text = Vec::new();
    generate(shell, &mut Args::command().bin_name(name), name, &mut text);
    // What it is for comes last in a line.
    String::from_utf8_lossy(&text).replace(&format!(" {name}\n"), &format!(" {PROGRAM}\n"))
}

/// Prints what may stand in the place of the last word.
pub fn words(words: &[String]) -> anyhow::Result<()> {
    let (found, end) = candidates(words);
    let lines: String = found.iter().map(|word| format!("{word}\n")).collect();
    print(&format!("{lines}{end}\n"))
}

fn candidates(words: &[String]) -> (Vec<String>, &'static str) {
    let mut root = Args::command();
    root.build();
    let (last, before) = words.split_last().map_or(("", &[][..]), |(last, before)| (last.as_str(), before));
    let mut command = &root;
    let mut open: Option<&Arg> = None;
    for word in before {
        if open.take().is_some() {
            continue;
        }
        if word.starts_with('-') {
            // `--flag=value` brings its value along.
            open = flag(command, word).filter(|arg| takes_value(arg) && !word.contains('='));
        } else if let Some(below) = command.find_subcommand(word) {
            command = below;
        }
    }
    if let Some(arg) = open {
        return values(arg, "", last);
    }
    if let Some((name, begun)) = last.split_once('=').filter(|_| last.starts_with("--")) {
        return flag(command, name)
            .map_or((Vec::new(), NO_FILES), |arg| values(arg, &format!("{name}="), begun));
    }
    let starts = |text: &String| text.starts_with(last);
    if last.starts_with('-') {
        let flags = command.get_arguments().filter(|arg| !arg.is_hide_set());
        let mut found: Vec<String> =
            flags.filter_map(|arg| Some(format!("--{}", arg.get_long()?))).filter(starts).collect();
        found.sort();
        return (found, NO_FILES);
    }
    let below = command.get_subcommands().filter(|below| !below.is_hide_set());
    let mut found: Vec<String> = below.map(|below| below.get_name().to_owned()).filter(starts).collect();
    if let Some(first) = command.get_positionals().next() {
        found.extend(values(first, "", last).0);
    }
    (found, NO_FILES)
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

fn values(arg: &Arg, before: &str, begun: &str) -> (Vec<String>, &'static str) {
    let possible = arg.get_possible_values();
    let names = possible.iter().filter(|value| !value.is_hide_set()).map(|value| value.get_name().to_owned());
    let found: Vec<String> =
        names.filter(|name| name.starts_with(begun)).map(|name| format!("{before}{name}")).collect();
    let file = arg.get_value_names().is_some_and(|names| names.iter().any(|name| name.as_str() == "FILE"));
    (found, if file { FILES } else { NO_FILES })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complete(line: &[&str]) -> (Vec<String>, &'static str) {
        candidates(&line.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn commands_flags_and_values_are_completed() {
        assert_eq!(complete(&["st"]).0, ["status"]);
        assert_eq!(complete(&["cluster", ""]).0, ["add", "help"]);
        assert_eq!(complete(&["status", "--w"]).0, ["--watch"]);
        assert_eq!(complete(&["status", "--state", "Un"]).0, ["Unreachable", "Unknown"]);
        assert_eq!(complete(&["status", "--state=Re"]).0, ["--state=Ready", "--state=Removing"]);
        assert_eq!(complete(&["clusters", "-o", ""]).0, ["wide", "json", "yaml"]);
        assert_eq!(complete(&["completion", "k"]).0, ["kubectl"]);
    }

    #[test]
    fn files_are_completed_where_a_file_is_wanted() {
        assert_eq!(complete(&["status", "--kubeconfig", ""]), (Vec::new(), FILES));
        assert_eq!(complete(&["status", "--context", ""]), (Vec::new(), NO_FILES));
    }

    #[test]
    fn what_is_hidden_is_not_offered() {
        assert!(!complete(&[""]).0.iter().any(|word| word.starts_with("__")));
    }
}
