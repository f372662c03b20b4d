//! The same with kills at more moments, and with more of the ways in which a line is bad.

/// Four lives.
const KILLS: usize = 10;

#[tokio::test]
async fn an_operator_killed_at_moments_of_four_lives_ends_as_if_left_alone() {
    Box::pin(super::killed(KILLS)).await;
}
