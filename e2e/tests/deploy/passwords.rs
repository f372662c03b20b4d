//! Passwords that a chart looks up stay on each cluster.

use anyhow::{Context as _, Result};
use emco_e2e::operator::{chart, deployed, deployment};
use emco_e2e::package::Package;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};

use super::{AT_WORK, start};

/// A password that is kept where it is there, drawn by an installation, and demanded by an upgrade.
fn database() -> Result<Package> {
    let template = include_str!("../../../controllers/src/reconcile_tests/password.yaml");
    chart("db", "1.0.0", &[("values.yaml", "size: 1\nlength: 16\n"), ("templates/db.yaml", template)])
}

#[tokio::test]
async fn passwords_that_a_chart_looks_up_stay_when_a_value_changes() {
    let _working = AT_WORK.read().await;
    let database = database().unwrap();
    let bed = start("kept", std::slice::from_ref(&database)).await.unwrap();
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        let spec = |length: usize| {
            format!(
                "placement: {{allOf: [{{selector: {{matchLabels: {{kept: 'yes'}}}}}}]}}\n\
                 overrideValues: [{{app: db, clusters: [{{selector: {{}}}}], values: {{length: {length}, size: {length}}}}}]"
            )
        };
        let deploy = async |length| {
            kubectl.apply(&deployment("kept", "db", std::slice::from_ref(&database), &spec(length))).await
        };
        let password = async |edge: &str| -> Result<Vec<u8>> {
            let secret = bed.edge(edge).api::<Secret>("kept").await?.get("db").await?;
            let mut data = secret.data.context("the Secret is empty")?;
            Ok(data.remove("password").context("no password")?.0)
        };
        kubectl.run(&["label", "ecl", "-n", "acme", "a", "kept=yes"]).await?;
        deploy(16).await?;
        deployed(bed, "kept", "db", 1).await?;
        let first = password("a").await?;
        assert_eq!(first.len(), 16);

        // Another cluster draws its own.
        kubectl.run(&["label", "ecl", "-n", "acme", "b", "kept=yes"]).await?;
        deployed(bed, "kept", "db", 2).await?;
        let second = password("b").await?;
        assert_ne!(first, second);

        // A chart that drew anew would draw longer ones.
        for (revision, length) in [(3, 20), (4, 24)] {
            deploy(length).await?;
            deployed(bed, "kept", "db", revision).await?;
            for (edge, kept) in [("a", &first), ("b", &second)] {
                let map = bed.edge(edge).api::<ConfigMap>("kept").await?.get("db").await?;
                let arrived = map.data.and_then(|data| data.get("size").cloned());
                assert_eq!(arrived, Some(length.to_string()), "{edge}");
                assert_eq!(password(edge).await?, *kept, "revision {revision} on {edge}");
            }
        }
        Ok(())
    })
    .await;
}
