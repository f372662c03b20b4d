//! Upgrades from the operator before, as well as from its charts.

use emco_e2e::before;

use super::upgrades;

#[tokio::test]
async fn an_upgrade_from_the_operator_and_the_charts_before_writes_to_no_edge() {
    Box::pin(upgrades(before::both)).await;
}
