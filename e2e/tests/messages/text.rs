//! In: sources and pages. Out: the commands that they name, and the words of each.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use emco_e2e::operator::root;

const PROGRAMS: [&str; 3] = ["kubectl ", "emco-operator ", "kubectl-emco "];

fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["tests", "reconcile_tests", "book", "fuzz"].contains(&name.as_str()) {
                files(&path, extension, found);
            }
        } else if path.extension().is_some_and(|e| e == extension) && name != "tests.rs" {
            found.push(path);
        }
    }
}

/// The string literals of a Rust file, without those of its tests.
fn literals(text: &str) -> Vec<String> {
    let text = text.split("#[cfg(test)]").next().unwrap_or_default();
    let mut found = Vec::new();
    let mut rest = text.char_indices().peekable();
    while let Some((at, c)) = rest.next() {
        match c {
            '/' if text[at..].starts_with("//") => {
                for (_, c) in rest.by_ref() {
                    if c == '\n' {
                        break;
                    }
                }
            }
            // A quotation mark as a character.
            '\'' if text[at..].starts_with("'\"'") => {
                rest.next();
                rest.next();
            }
            'r' if text[at..].starts_with("r#\"") || text[at..].starts_with("r\"") => {
                let hashes = usize::from(text[at..].starts_with("r#"));
                let start = at + 2 + hashes;
                let end = if hashes == 1 { "\"#" } else { "\"" };
                let length = text[start..].find(end).unwrap_or_default();
                found.push(text[start..start + length].to_owned());
                while rest.peek().is_some_and(|(at, _)| *at < start + length + end.len()) {
                    rest.next();
                }
            }
            '"' => {
                let mut literal = String::new();
                while let Some((_, c)) = rest.next() {
                    match c {
                        '"' => break,
                        '\\' => match rest.next().map(|(_, c)| c) {
                            Some('n') => literal.push('\n'),
                            Some('\n') => {
                                while rest.peek().is_some_and(|(_, c)| c.is_whitespace()) {
                                    rest.next();
                                }
                            }
                            Some(c) => literal.push(c),
                            None => {}
                        },
                        c => literal.push(c),
                    }
                }
                found.push(literal);
            }
            _ => {}
        }
    }
    found
}

/// The commands in a sentence: between backticks, or up to where the sentence goes on. `verbs` are those of kubectl.
fn commands(text: &str, verbs: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    let quoted = text.split('`').skip(1).step_by(2).map(|command| (command, true));
    let plain = text.split('`').step_by(2).map(|sentence| (sentence, false));
    for (part, whole) in quoted.chain(plain) {
        for program in PROGRAMS {
            let mut rest = part;
            while let Some(at) = rest.find(program) {
                let begins = at == 0 || rest[..at].ends_with([' ', '(', '\n', '|']);
                let command = &rest[at..];
                rest = &rest[at + program.len()..];
                // "kubectl can" and "emco-operator starts" are no commands: without marks only flags tell one.
                if !begins || (whole && at > 0 && !part[..at].contains('|')) {
                    continue;
                }
                let ends: &[char] = if whole { &['\n', '|'] } else { &['\n', '|', ')', ';', ',', '"'] };
                let command = command.split(ends).next().unwrap_or_default().trim();
                let verb = command.split_whitespace().nth(1).unwrap_or_default();
                if whole || (program == "kubectl " && verbs.contains(verb.trim_end_matches('.'))) {
                    found.push(command.trim_end_matches(['.', ':']).to_owned());
                }
            }
        }
    }
    found
}

/// The commands of the console blocks of a page: lines after a prompt.
fn typed(page: &str) -> Vec<String> {
    // The notes of a chart have no prompt.
    let lines = page.lines().filter_map(|line| {
        line.strip_prefix("$ ").or_else(|| line.strip_prefix("  kubectl ").map(|_| line.trim()))
    });
    let mut found = Vec::new();
    for line in lines {
        let line = [" #", " > ", " || ", " && "]
            .iter()
            .fold(line, |line, end| line.split(end).next().unwrap_or_default());
        for part in line.split(" | ") {
            let part = part.trim().trim_start_matches("target/release/").trim_start_matches("target/image/");
            if PROGRAMS.iter().any(|program| part.starts_with(program)) {
                found.push(part.to_owned());
            }
        }
    }
    found
}

/// The words of a command line, with something in the place of what is filled in.
pub fn words(command: &str) -> Vec<String> {
    let mut filled = String::new();
    let mut depth = 0;
    // What is called an id is that of a cluster: its provider's name and its own.
    for c in command.replace("{id}", "{provider}/{name}").chars() {
        match c {
            '{' => {
                depth += 1;
                filled.push('x');
            }
            '}' => depth -= 1,
            _ if depth > 0 => {}
            c => filled.push(c),
        }
    }
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in filled.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            (_, c) => {
                if let Some(last) = words.last_mut() {
                    last.push(c);
                }
            }
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// All commands with the places that name them.
pub fn all(verbs: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<String>> {
    let mut found: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut add = |path: &Path, commands: Vec<String>| {
        let place = path.strip_prefix(root()).unwrap_or(path).display().to_string();
        for command in commands {
            found.entry(command).or_default().insert(place.clone());
        }
    };
    for folder in ["crds/src", "controllers/src", "controllers/engine/src", "operator/src"] {
        let mut sources = Vec::new();
        files(&root().join(folder), "rs", &mut sources);
        for path in sources {
            let text = std::fs::read_to_string(&path).unwrap();
            add(&path, literals(&text).iter().flat_map(|literal| commands(literal, verbs)).collect());
        }
    }
    let mut pages = vec![root().join("README.md")];
    files(&root().join("docs"), "md", &mut pages);
    files(&root().join("charts"), "txt", &mut pages);
    for path in pages {
        let text = std::fs::read_to_string(&path).unwrap();
        let prose = text.split("```").step_by(2).flat_map(|prose| {
            prose
                .split('`')
                .skip(1)
                .step_by(2)
                .flat_map(|code| commands(&format!("`{code}`"), verbs))
                .collect::<Vec<_>>()
        });
        add(&path, prose.chain(typed(&text)).collect());
    }
    found
}

/// The kinds that a command of kubectl is about, as it names them.
pub fn resources(words: &[String]) -> Vec<&str> {
    const ABOUT_KINDS: [&str; 11] = [
        "annotate",
        "autoscale",
        "delete",
        "describe",
        "edit",
        "explain",
        "get",
        "label",
        "patch",
        "scale",
        "wait",
    ];
    // What follows them is no kind.
    const WITH_A_VALUE: [&str; 8] = ["-n", "-l", "-o", "-f", "-k", "-p", "--context", "--namespace"];
    let mut plain = Vec::new();
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        if WITH_A_VALUE.contains(&word.as_str()) {
            rest.next();
        } else if !word.starts_with('-') {
            plain.push(word.as_str());
        }
    }
    match plain[..] {
        [verb, kinds, ..] if ABOUT_KINDS.contains(&verb) => {
            kinds.split(',').map(|kind| kind.split('/').next().unwrap_or_default()).collect()
        }
        _ => Vec::new(),
    }
}

#[test]
fn commands_are_found_in_sentences_and_made_into_words() {
    let verbs: BTreeSet<String> = ["annotate", "apply", "config"].map(str::to_owned).into();
    let commands = |text| commands(text, &verbs);
    assert_eq!(
        commands(
            "run `emco-operator crds | kubectl apply -f -`, or embed it (kubectl config view --raw), and so on"
        ),
        ["kubectl apply -f -", "emco-operator crds", "kubectl config view --raw"]
            .map(str::to_owned)
            .into_iter()
            .collect::<Vec<_>>()
    );
    assert_eq!(commands("a field that kubectl can set"), Vec::<String>::new());
    assert_eq!(
        commands("to give up: kubectl annotate dig {} -n {} {}={}"),
        ["kubectl annotate dig {} -n {} {}={}"].map(str::to_owned)
    );
    assert_eq!(resources(&words("kubectl -n x get ecl,dig/a -o yaml")), ["ecl", "dig"]);
    assert_eq!(resources(&words("kubectl create ns x")), Vec::<&str>::new());
    assert_eq!(words("kubectl label ns {name} 'a b'={}"), ["kubectl", "label", "ns", "x", "a b=x"]);
    assert_eq!(words("kubectl emco cluster rotate {id}"), ["kubectl", "emco", "cluster", "rotate", "x/x"]);
    assert_eq!(literals("f(\"a\\\"b\", r#\"c\"d\"#, '\"'); // \"e\"\n\"g\\\n   h\""), ["a\"b", "c\"d", "gh"]);
}
