//! Tests of the page, and of how a made-up command is described.

use clap::ArgAction;

use super::*;

/// A command and all below it that is not hidden, by name.
fn all<'a>(command: &'a Command, found: &mut Vec<(&'a str, &'a Command)>) {
    found.push((command.get_bin_name().unwrap(), command));
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            all(below, found);
        }
    }
}

fn built() -> Command {
    let mut root = Args::command();
    root.build();
    root
}

fn headings(page: &str) -> Vec<&str> {
    page.lines().filter(|line| line.starts_with('#')).collect()
}

/// What is left of a page without its code.
fn without_code(page: &str) -> String {
    let outside: String = page.split("```").step_by(2).collect();
    outside.split('`').step_by(2).collect()
}

/// A command line that has what the real one may get.
fn made() -> Command {
    let level = Arg::new("level")
        .short('l')
        .long("level")
        .visible_alias("grade")
        .value_name("A|B")
        .value_parser(["low", "high"])
        .default_value("low")
        .env("MADE_LEVEL")
        .help("Where <that> is, a|b");
    let secret = Arg::new("secret").long("secret").action(ArgAction::SetTrue).hide(true);
    let name = Arg::new("name").value_name("NAME").required(true).help("Which.");
    let below = Command::new("do").visible_alias("make").about("Do it").args([level, secret, name]);
    let hidden = Command::new("quietly").hide(true).subcommand(Command::new("below"));
    Command::new("made")
        .about("Made up")
        .subcommand(below.after_help("Exit codes: 0 <done>"))
        .subcommand(hidden)
}

#[test]
fn every_visible_command_has_a_heading_and_no_hidden_one_has() {
    let (root, page) = (built(), page());
    let mut found = Vec::new();
    all(&root, &mut found);
    let wanted: Vec<String> = found
        .iter()
        .map(|(name, _)| format!("{} {name}", "#".repeat(name.split(' ').count().saturating_sub(1))))
        .collect();
    assert_eq!(headings(&page), wanted);
    for line in ["# kubectl emco", "## kubectl emco status", "### kubectl emco cluster add"] {
        assert!(wanted.iter().any(|heading| heading == line), "{line}");
    }
    assert!(!page.contains("__"), "a hidden command is on the page");
}

#[test]
fn every_command_says_its_exit_codes() {
    let root = built();
    let mut found = Vec::new();
    all(&root, &mut found);
    for (name, command) in found {
        let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        assert!(end.starts_with("Exit codes: "), "{name} says {end:?}");
    }
}

#[test]
fn no_angle_bracket_stands_outside_of_code() {
    let page = page();
    let text = without_code(page.strip_prefix(HEAD).unwrap());
    assert!(!text.contains(['<', '>']), "{text}");
    assert!(
        page.contains("| `--cluster <PROVIDER/CLUSTER>` | Only this cluster, as PROVIDER/CLUSTER; "),
        "{page}"
    );
}

#[test]
fn a_command_is_described_with_all_that_its_help_says() {
    let page = page_of(made());
    let wanted = "## made do\n\nDo it.\n\n```text\nmade do [OPTIONS] <NAME>\n```\n\nAliases: `make`.\n\n\
                  | Argument | |\n|---|---|\n| `<NAME>` | Which. Required. |\n\n\
                  | Option | |\n|---|---|\n| `-l, --level <A\\|B>` | Where &lt;that&gt; is, a\\|b. One of `low`, `high`. \
                  Default: `low`. Environment variable: `MADE_LEVEL`. Aliases: `--grade`. |\n\n\
                  Exit codes: 0 &lt;done&gt;\n";
    assert!(page.ends_with(wanted), "{page}");
    assert!(page.contains("| Command | |\n|---|---|\n| [made do](#made-do) | Do it. |\n\n"), "{page}");
    assert_eq!(headings(&page), ["# made", "## made do"]);
}

#[test]
fn every_link_to_a_command_leads_to_its_heading() {
    let page = page();
    let anchors: Vec<String> = headings(&page)
        .into_iter()
        .map(|heading| heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-"))
        .collect();
    let links: Vec<&str> = page.split("](#").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert_eq!(links.len() + 1, anchors.len(), "each but the first has one");
    for link in links {
        assert!(anchors.iter().any(|anchor| anchor == link), "{link}");
    }
}

#[test]
fn the_page_of_the_book_is_what_the_commands_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/cli.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page(), "docs/reference/cli.md is not what the commands say: run `make generate`");
}
