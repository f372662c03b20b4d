//! The revisions of a deployment, and why each cluster was chosen or not.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, deployed, deployment, says};

use super::looks::{EVERYWHERE, deploy, tenant};
use super::rig::{STAGE, run, run_as};

pub async fn change(bed: &Bed, tenant: &str, spec: &str, revision: i64) -> Result<()> {
    let charts = [chart("note", "1.0.0", &[])?, chart("gate", "1.0.0", &[])?];
    bed.hub().kubectl().apply(&deployment(tenant, "till", &charts, spec)).await?;
    deployed(bed, tenant, "till", revision).await.map(drop)
}

/// Waits until it is recorded that a revision was ready everywhere.
pub async fn became_good(bed: &Bed, tenant: &str, revision: i64) -> Result<()> {
    let (context, good) = (format!("actx/dig-till-{revision}"), "--for=jsonpath={.status.good}=true");
    bed.hub().kubectl().run(&["wait", &context, "-n", tenant, good, "--timeout=60s"]).await.map(drop)
}

#[tokio::test]
async fn history_says_why_each_revision_was_made_and_what_it_changed() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "years", EVERYWHERE).await?;
        became_good(bed, "years", 1).await?;
        let values = "overrideValues: [{app: note, values: {key: two}}]";
        change(bed, "years", &format!("{EVERYWHERE}\n{values}"), 2).await?;
        became_good(bed, "years", 2).await?;
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
        assert_eq!(cells(1, &[4, 5]), ["Updated", "Good"]);
        assert_eq!(cells(2, &[4, 5]), ["Instantiated", "Good"]);
        let json = run(bed, &["history", "years/till", "-o", "json"]).await?.json();
        assert_eq!(json[1]["changes"]["objects"]["changed"], 2, "{json:#}");
        // Tenants see all of it: the counts are stored with the revision.
        let tenant = tenant(bed, "years").await?;
        let theirs = run_as(bed, &tenant, &["history", "years/till", "-o", "json"]).await?;
        theirs.is(0, &[]);
        for (at, counts) in json.as_array().into_iter().flatten().enumerate() {
            ensure!(theirs.json()[at]["changes"] == counts["changes"], "{theirs:?}");
        }
        ensure!(theirs.err.is_empty(), "{theirs:?}");
        run(bed, &["history", "years/none"]).await?.is(1, &["there is no deployment intent group none"]);
        Ok(())
    })
    .await;
}

/// A placement that is refused is explained before what runs, also where nothing runs yet.
async fn a_refused_placement(bed: &Bed) -> Result<()> {
    let place = async |tier: &str| {
        let selector = format!("{{matchLabels: {{edge: {tier}}}}}");
        let patch = format!("spec: {{placement: {{allOf: [{{provider: acme, selector: {selector}}}]}}}}");
        let args = ["patch", "dig", "till", "-n", "reasons", "--type=merge", "-p", &patch];
        bed.hub().kubectl().run(&args).await.map(drop)
    };
    place("moon").await?;
    says::<DeploymentIntentGroup, _>(bed, "reasons", "till", types::PLACED, "NoClusterMatches").await?;
    let said = run(bed, &["explain", "reasons/till", "--app", "note", "--cluster", "acme/a"]).await?;
    let refused = "reasons/till: the last change is refused: Placed is False (NoClusterMatches): app ";
    said.is(4, &[refused, "edge=moon", "This runs:", "reasons/till, revision 1"]);
    let (first, runs) = (said.out.find(refused), said.out.find("note   acme/a"));
    ensure!(first == Some(0) && runs.is_some(), "{}", said.out);
    let json = run(bed, &["explain", "reasons/till", "-o", "json"]).await?;
    json.is(4, &[]);
    let json = json.json();
    ensure!(json["refused"]["reason"] == "NoClusterMatches" && json["revision"] == 1, "{json:#}");
    place("a").await?;
    deployed(bed, "reasons", "till", 1).await?;
    run(bed, &["explain", "reasons/till"]).await?.is(0, &["reasons/till, revision 1"]);

    let charts = [chart("note", "1.0.0", &[])?];
    let nowhere = "placement: {allOf: [{provider: acme, selector: {matchLabels: {edge: moon}}}]}";
    bed.hub().kubectl().apply(&deployment("reasons", "never", &charts, nowhere)).await?;
    says::<DeploymentIntentGroup, _>(bed, "reasons", "never", types::PLACED, "NoClusterMatches").await?;
    let never = run(bed, &["explain", "reasons/never"]).await?;
    never.is(4, &["reasons/never: the last change is refused: Placed is False", "has no revision yet"]);
    ensure!(!never.out.contains("VERDICT"), "{}", never.out);
    Ok(())
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
        a_refused_placement(bed).await?;
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
