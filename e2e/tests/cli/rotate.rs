//! New credentials for a registered cluster, without interruption; the old ones are worth nothing afterwards.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, project};
use serde_json::Value;

use super::rig::{STAGE, file, lend_e, run, run_as};
use super::rights::user;

const THERE: &str = "placement: {allOf: [{provider: apart, cluster: fargo}]}";
/// Revisions of logical clouds come and go with the clusters of other tests.
const OF_DEPLOYMENT: &str = "emco.io/owner-kind=DeploymentIntentGroup";
const ROTATE: [&str; 3] = ["cluster", "rotate", "apart/fargo"];

async fn get(bed: &Bed, plane: &str, args: &[&str]) -> Result<Value> {
    let args: Vec<&str> = ["get"].iter().chain(args).chain(&["-o", "json"]).copied().collect();
    Ok(serde_json::from_str(&bed.edge(plane).kubectl().run(&args).await?)?)
}

/// The kubeconfig that is stored on the hub.
async fn stored(bed: &Bed) -> Result<String> {
    let secret = get(bed, "hub", &["secret", "fargo-kubeconfig", "-n", "apart"]).await?;
    let text = STANDARD.decode(secret["data"]["kubeconfig"].as_str().context("no kubeconfig")?)?;
    Ok(String::from_utf8(text)?)
}

/// Names of the Secrets that tokens live with.
async fn secrets(bed: &Bed) -> Result<Vec<String>> {
    let list = get(bed, "e", &["secrets", "-n", "emco-system"]).await?;
    let items = list["items"].as_array().context("no list")?;
    Ok(items.iter().filter_map(|one| one["metadata"]["name"].as_str()).map(str::to_owned).collect())
}

/// Whether the cluster accepts a kubeconfig.
async fn accepted(bed: &Bed, kubeconfig: &str) -> Result<bool> {
    let path = file(bed, "fargo-old.kubeconfig", kubeconfig).await?.display().to_string();
    let said = bed.edge("e").kubectl().output(&["get", "ns", "--kubeconfig", &path], "").await?;
    Ok(said.code == Some(0))
}

/// Servers remember for some seconds what they accepted.
async fn is_ended(bed: &Bed, kubeconfig: &str) -> Result<()> {
    let ended = async {
        while accepted(bed, kubeconfig).await? {
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_secs(60), ended).await.context("the old token is accepted still")?
}

/// What must not change: when the Cluster became ready, the revision, and the object on the cluster.
async fn untouched(bed: &Bed) -> Result<(Value, Value, Value)> {
    let cluster = get(bed, "hub", &["ecl", "fargo", "-n", "apart"]).await?;
    let conditions = cluster["status"]["conditions"].as_array().context("no conditions")?;
    let ready = conditions.iter().find(|one| one["type"] == "Ready").context("no Ready")?;
    ensure!(ready["status"] == "True", "{ready}");
    let revisions = get(bed, "hub", &["appcontexts", "-n", "rotates", "-l", OF_DEPLOYMENT]).await?;
    let names = revisions["items"].as_array().context("no list")?.iter();
    let names = names.map(|one| one["metadata"]["uid"].clone()).collect();
    let note = get(bed, "e", &["configmap", "note", "-n", "rotates"]).await?;
    Ok((ready["lastTransitionTime"].clone(), names, note["metadata"]["resourceVersion"].clone()))
}

#[tokio::test]
async fn credentials_are_replaced_without_interruption_and_the_old_ones_end() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let _turn = lend_e(bed).await?;
        let admin = file(bed, "e-admin.kubeconfig", &bed.edge("e").kubeconfig()?).await?;
        let admin = admin.display().to_string();
        let with_admin = [&ROTATE[..], &["--kubeconfig", &admin]].concat();
        run(bed, &ROTATE).await?.is(1, &["there is no Cluster apart/fargo on the hub"]);
        let add = ["cluster", "add", "apart/fargo", "--kubeconfig", &admin, "--level", "Admin"];
        run(bed, &add).await?.is(0, &["apart/fargo is registered and ready"]);
        run(bed, &[&add[..], &["--renew"]].concat())
            .await?
            .is(2, &["kubectl emco cluster rotate apart/fargo"]);
        project(bed, "rotates").await?;
        let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n";
        let charts = [chart("note", "1.0.0", &[("templates/note.yaml", note)])?];
        chart_map(bed, "rotates", "charts", &charts).await?;
        bed.hub().kubectl().apply(&deployment("rotates", "shop", &charts, THERE)).await?;
        deployed(bed, "rotates", "shop", 1).await?;

        let (first, before) = (stored(bed).await?, untouched(bed).await?);
        let dry = [&ROTATE[..], &["--dry-run"]].concat();
        run(bed, &dry).await?.is(0, &["apart/fargo would get a new token"]);
        ensure!(stored(bed).await? == first, "a dry run stores nothing");
        // What an earlier run left that died before the end.
        let stale =
            "{apiVersion: v1, kind: Secret, metadata: {name: emco-hub-token-stale, namespace: emco-system}}";
        bed.edge("e").kubectl().apply(stale).await?;
        run(bed, &ROTATE).await?.is(0, &["apart/fargo has new credentials", "the old token is ended"]);
        let second = stored(bed).await?;
        ensure!(second != first && secrets(bed).await?.len() == 1, "{:?}", secrets(bed).await?);
        ensure!(accepted(bed, &second).await?, "the stored token works");
        ensure!(untouched(bed).await? == before, "{:?} {before:?}", untouched(bed).await?);

        // By a person, with a token that has no end; and back.
        run(bed, &[&with_admin[..], &["--token", "Secret"]].concat())
            .await?
            .is(0, &["a token without an end", "the old token is ended"]);
        let third = stored(bed).await?;
        run(bed, &ROTATE).await?.is(0, &["a bound token that ends", "the old token is ended"]);
        // Servers forget all of them at about the same time.
        for ended in [&first, &second, &third] {
            is_ended(bed, ended).await?;
        }
        // Two at once: what is stored in the end works, and is all that is left.
        let (one, other) = tokio::join!(run(bed, &ROTATE), run(bed, &ROTATE));
        for said in [one?, other?] {
            let refused = said.code == Some(1) && said.err.contains("run this again");
            ensure!(said.code == Some(0) || refused, "{said:?}");
        }
        run(bed, &ROTATE).await?.is(0, &[]);
        ensure!(secrets(bed).await?.len() == 1, "{:?}", secrets(bed).await?);
        ensure!(accepted(bed, &stored(bed).await?).await?);
        ensure!(untouched(bed).await? == before, "{:?} {before:?}", untouched(bed).await?);
        refusals(bed, &with_admin).await?;
        run(bed, &add).await?.is(0, &["registered and ready"]);
        bed.hub().kubectl().run(&["delete", "dig", "shop", "-n", "rotates"]).await?;
        run(bed, &["cluster", "remove", "apart/fargo"])
            .await?
            .is(0, &["the account emco-hub, its role and namespace emco-system are deleted"]);
        Ok(())
    }))
    .await;
}

/// What is refused changes nothing.
async fn refusals(bed: &Bed, with_admin: &[&str]) -> Result<()> {
    let (last, left) = (stored(bed).await?, secrets(bed).await?);
    let other = file(bed, "a-admin.kubeconfig", &bed.edge("a").kubeconfig()?).await?;
    let other = other.display().to_string();
    run(bed, &[&ROTATE[..], &["--kubeconfig", &other]].concat())
        .await?
        .is(1, &["that is another cluster than apart/fargo", "nothing was changed"]);
    run(bed, &["cluster", "rotate", "acme/a"])
        .await?
        .is(1, &["Secret acme/a-kubeconfig is kept by somebody else", "not made by kubectl-emco"]);
    // Who may not write the Secret has made a token in vain, which is ended.
    let rules = "- {apiGroups: [emco.io], resources: ['*'], verbs: [get, list, watch]}
- {apiGroups: [''], resources: [secrets], verbs: [get]}";
    let looks = user(bed, "looks", rules).await?;
    run_as(bed, &looks, &ROTATE).await?.is(
        1,
        &["the credentials of the hub are as they were", "you may not write secret apart/fargo-kubeconfig"],
    );
    ensure!(stored(bed).await? == last && secrets(bed).await? == left, "{:?}", secrets(bed).await?);
    bed.edge("e").kubectl().run(&["delete", "clusterrolebinding", "emco-hub"]).await?;
    run(bed, &ROTATE)
        .await?
        .is(1, &["cannot replace themselves", "kubectl emco cluster rotate apart/fargo --context CONTEXT"]);
    // Made with rights, and worth nothing: it is not stored, and does not stay.
    run(bed, with_admin)
        .await?
        .is(1, &["the credentials of the hub are as they were", "is refused by the cluster"]);
    ensure!(stored(bed).await? == last);
    ensure!(secrets(bed).await? == left, "{:?}", secrets(bed).await?);
    Ok(())
}
