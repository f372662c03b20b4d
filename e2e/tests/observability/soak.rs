//! Has the book's configuration judged by the promtool that knows Kubernetes; it takes minutes to build.

use emco_e2e::programs::{Program, Programs};

use super::{FOUND, example_of_the_book, is_a_configuration};

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
