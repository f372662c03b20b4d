//! The revisions of a deployment, and why each cluster was chosen or not.

use anyhow::{Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, deployed, deployment};

use super::looks::{EVERYWHERE, deploy, tenant};
use super::rig::{STAGE, run, run_as};

pub async fn change(bed: &Bed, tenant: &str, spec: &str, revision: i64) -> Result<()> {
    let charts = [chart("note", "1.0.0", &[])?, chart("gate", "1.0.0", &[])?];
    bed.hub().kubectl().apply(&deployment(tenant, "till", &charts, spec)).await?;
    deployed(bed, tenant, "till", revision).await.map(drop)
}

#[tokio::test]
async fn history_says_why_each_revision_was_made_and_what_it_changed() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "years", EVERYWHERE).await?;
        let values = "overrideValues: [{app: note, values: {key: two}}]";
        change(bed, "years", &format!("{EVERYWHERE}\n{values}"), 2).await?;
        change(bed, "years", &format!("placement: {{allOf: [{{provider: acme, cluster: a}}]}}\n{values}"), 3)
            .await?;
        let said = run(bed, &["history", "years/till"]).await?;
        said.is(0, &["REVISION   STATE      CAUSE"]);
        let rows: Vec<Vec<&str>> = said
            .out
            .lines()
            .skip(1)
            .map(|line| line.split("   ").map(str::trim).filter(|c| !c.is_empty()).collect())
            .collect();
        let cells =
            |row: usize, columns: &[usize]| columns.iter().map(|&at| rows[row][at]).collect::<Vec<_>>();
        assert_eq!(cells(0, &[0, 1, 6, 7, 8]), ["3", "Running", "3", "+0 ~0 -1", "+0 ~0 -3"]);
        assert_eq!(cells(1, &[0, 1, 2, 6, 7, 8]), ["2", "Replaced", "Update", "6", "+0 ~2 -0", "+0 ~2 -0"]);
        assert_eq!(cells(2, &[0, 1, 2, 6, 7, 8]), ["1", "Replaced", "Create", "6", "+2 ~0 -0", "+6 ~0 -0"]);
        let json = run(bed, &["history", "years/till", "-o", "json"]).await?.json();
        assert_eq!(json[1]["changes"]["objects"]["changed"], 2, "{json:#}");
        // Tenants see all but what is in the manifests.
        let tenant = tenant(bed, "years").await?;
        let said = run_as(bed, &tenant, &["history", "years/till"]).await?;
        said.is(0, &["Replaced", "what each revision changed is left out"]);
        run(bed, &["history", "years/none"]).await?.is(1, &["there is no deployment intent group none"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn explain_says_why_a_cluster_was_chosen_and_what_another_lacks() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "reasons", "placement: {allOf: [{provider: acme, selector: {matchLabels: {edge: a}}}]}")
            .await?;
        // It is written after the clusters had their turn.
        let create = ["wait", "--for=create", "cm/dig-till-1-explain", "-n", "reasons", "--timeout=60s"];
        bed.hub().kubectl().run(&create).await?;
        let said = run(bed, &["explain", "reasons/till", "--app", "note"]).await?;
        said.is(0, &["reasons/till, revision 1", "note   acme/a", "Chosen", "Rejected"]);
        let why = run(bed, &["explain", "reasons/till", "--cluster", "acme/b", "--app", "gate"]).await?;
        why.is(0, &["acme/b", "Rejected", "edge=a"]);
        assert_eq!(why.out.lines().count(), 3, "{}", why.out);
        let json = run(bed, &["explain", "reasons/till", "--cluster", "acme/a", "-o", "json"]).await?.json();
        assert_eq!(json["clusters"][0]["verdict"], "Chosen", "{json:#}");
        run(bed, &["explain", "reasons/till", "--cluster", "acme/moon"])
            .await?
            .is(1, &["the explanation of revision 1 says nothing of cluster acme/moon"]);
        // The ConfigMap is the project's, and nothing depends on it.
        let map = "dig-till-1-explain";
        bed.hub().kubectl().run(&["delete", "cm", map, "-n", "reasons"]).await?;
        run(bed, &["explain", "reasons/till"])
            .await?
            .is(1, &["ConfigMap reasons/dig-till-1-explain is missing"]);
        let tenant = tenant(bed, "reasons").await?;
        let said = run_as(bed, &tenant, &["explain", "reasons/till"]).await?;
        ensure!(said.code == Some(1), "{said:?}");
        said.is(1, &["you may not read config map reasons/dig-till-1-explain"]);
        Ok(())
    })
    .await;
}
