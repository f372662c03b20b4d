//! The Prometheus that `prometheus/go.mod` names, which knows Kubernetes; it takes minutes to build, and Debian has an older one.

use emco_e2e::programs::{Program, Programs};

use super::live::expressions_find_series;
use super::{FOUND, alerts, ask, example_of_the_book, is_a_configuration};

#[tokio::test]
async fn rules_and_their_tests_are_those_of_the_newest_prometheus() {
    let programs = Programs::get_exact(&[Program::Promtool]).await.unwrap();
    let said = ask(&programs, &["check", "rules", "--lint=all", "--lint-fatal", "rules.yaml"]).await.unwrap();
    assert!(said.contains(&format!("{} rules found", alerts().len())), "{said}");
    let said = ask(&programs, &["test", "rules", "rules.test.yaml"]).await.unwrap();
    assert!(said.contains("SUCCESS"), "{said}");
}

#[tokio::test]
async fn every_expression_finds_series_in_the_newest_prometheus() {
    Box::pin(expressions_find_series(Programs::get_exact(&[Program::Prometheus]).await.unwrap())).await;
}

#[tokio::test]
async fn the_scrape_configuration_of_the_book_finds_its_targets() {
    let programs = Programs::get_exact(&[Program::Promtool]).await.unwrap();
    let example = example_of_the_book();
    is_a_configuration(&programs, &example).await.unwrap();
    // It looks at how they are found.
    let wrong = example.replacen(FOUND, &FOUND.replace("endpointslice", "nonsense"), 1);
    let refused = is_a_configuration(&programs, &wrong).await.unwrap_err();
    assert!(format!("{refused:#}").contains("nonsense"), "{refused:#}");
}
