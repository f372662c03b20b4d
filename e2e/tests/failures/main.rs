//! Checks that every row of the pages of failures and of security is shown by tests that exist.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

mod defects;
mod failures;
mod original;
mod security;
mod trial;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The cells of one column in all tables of a page whose header has `title` there.
fn cells(page: &str, column: usize, title: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let mut found = BTreeSet::new();
    let mut within = false;
    for line in text.lines() {
        let Some(row) = line.strip_prefix("| ") else {
            within &= line.starts_with("|-");
            continue;
        };
        let cell = row.split(" | ").nth(column).unwrap_or_default();
        if within {
            assert!(found.insert(cell.to_owned()), "{page} has two rows for: {cell}");
        }
        within |= cell == title;
    }
    found
}

fn keys(table: &[(&str, &[&str])]) -> BTreeSet<String> {
    table.iter().map(|(row, _)| (*row).to_owned()).collect()
}

#[test]
fn every_row_of_the_page_of_failures_is_shown_by_a_test() {
    assert_eq!(cells("docs/failures.md", 0, "What happens"), keys(&failures::shown_by()));
}

#[test]
fn every_attack_of_the_page_on_security_is_shown_by_a_test() {
    assert_eq!(cells("docs/security.md", 1, "With what"), keys(&security::shown_by()));
}

/// All tests, with their files.
fn all_tests() -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    for part in ["controllers", "crds", "e2e", "operator"] {
        collect(&root().join(part), &mut found);
    }
    found
}

#[test]
fn the_tests_that_show_them_exist() {
    let found = all_tests();
    for (row, tests) in failures::shown_by().iter().chain(&security::shown_by()) {
        assert!(!tests.is_empty(), "no test is named that shows: {row}");
        for test in *tests {
            let (test, step) = test.split_once('/').map_or((*test, None), |(test, step)| (test, Some(step)));
            let Some(file) = found.get(test) else { panic!("no test {test}, which is to show: {row}") };
            // A step is a function beside its test.
            if let Some(step) = step {
                assert!(has_function(file.parent().unwrap(), step), "no step {step} of {test}, for: {row}");
            }
        }
    }
}

fn has_function(folder: &Path, name: &str) -> bool {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.any(|path| std::fs::read_to_string(path).unwrap().contains(&format!("fn {name}(")))
}

#[test]
fn every_finding_of_the_hostile_reading_has_a_row_and_a_test() {
    let numbers: Vec<String> = [("A", 7), ("B", 11), ("C", 4), ("E", 10)]
        .iter()
        .flat_map(|(part, last)| (1..=*last).map(move |number| format!("{part}{number}")))
        .chain(["D8".to_owned()])
        .collect();
    let there: BTreeSet<&str> = defects::ALL.iter().map(|defect| defect.number).collect();
    assert_eq!(there, numbers.iter().map(String::as_str).collect());
    assert_eq!(there.len(), defects::ALL.len(), "a number is there twice");
    let rows: BTreeMap<&str, &[&str]> =
        failures::shown_by().into_iter().chain(security::shown_by()).collect();
    for defect in defects::ALL {
        let (number, was) = (defect.number, defect.was);
        assert!(!defect.shown.is_empty(), "nothing shows that {number} is cured: {was}");
        for (row, tests) in defect.shown {
            let all = rows.get(row).unwrap_or_else(|| panic!("{number} ({was}): no page has the row {row}"));
            for test in *tests {
                assert!(all.contains(test), "{number} ({was}): row {row} does not name {test}");
            }
        }
    }
}

#[test]
fn every_defect_of_the_first_emco_has_a_test_unless_its_part_comes_later() {
    let found = all_tests();
    let there: BTreeSet<u8> =
        original::ALL.iter().map(|defect| defect.number).chain(original::LATER).collect();
    assert_eq!(there, (1..=25).collect());
    assert_eq!(there.len(), original::ALL.len() + original::LATER.len(), "a number is there twice");
    let of_intents: Vec<u8> = original::OF_INTENTS.iter().map(|defect| defect.number).collect();
    assert_eq!(of_intents, [1, 9, 10, 11, 12, 13, 14, 15]);
    for defect in original::ALL.iter().chain(original::OF_INTENTS) {
        let (number, was) = (defect.number, defect.was);
        assert!(!defect.shown.is_empty(), "nothing shows that {number} is cured: {was}");
        for test in defect.shown {
            assert!(
                found.contains_key(*test),
                "no test {test}, which is to show that {number} is cured: {was}"
            );
        }
    }
}

#[test]
fn every_finding_of_the_trial_has_a_test() {
    let found = all_tests();
    let numbers: Vec<u8> = trial::ALL.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (1..=17).collect::<Vec<_>>());
    for (number, was, shown) in trial::ALL {
        assert!(!shown.is_empty(), "nothing shows that {number} is mended: {was}");
        for test in *shown {
            assert!(
                found.contains_key(*test),
                "no test {test}, which is to show that {number} is mended: {was}"
            );
        }
    }
}

/// The end of a page, which names the tests of each of its rows.
fn appendix(table: &[(&str, &[&str])]) -> String {
    let mut text = format!(
        "{APPENDIX}\n\nEach row is shown by tests; `make test` runs them, and `make soak` those that take long.\n\n"
    );
    for (row, tests) in table {
        let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        writeln!(text, "* *{row}*: {}", tests.join(", ")).unwrap();
    }
    text
}

const APPENDIX: &str = "## Tests";

/// Written anew with `EMCO_WRITE_PAGES=1`.
#[test]
fn each_page_names_the_tests_that_show_its_rows() {
    let failures = ("docs/failures.md", failures::shown_by());
    for (page, table) in [failures, ("docs/security.md", security::shown_by())] {
        let path = root().join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        let head = text.split(&format!("\n{APPENDIX}\n")).next().unwrap().trim_end();
        let wanted = format!("{head}\n\n{}", appendix(&table));
        if std::env::var_os("EMCO_WRITE_PAGES").is_some() {
            std::fs::write(&path, &wanted).unwrap();
        } else {
            assert!(text == wanted, "{page} names other tests: EMCO_WRITE_PAGES=1 writes it anew");
        }
    }
}

/// Names of functions right under an attribute that makes them a test, with their files.
fn collect(folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut test = false;
            for line in text.lines().map(str::trim) {
                if let Some((_, name)) = line.split_once("fn ").filter(|_| test) {
                    found.insert(name.split('(').next().unwrap().to_owned(), path.clone());
                }
                test = line.starts_with("#[test") || line.starts_with("#[tokio::test");
            }
        }
    }
}
