//! `clusters.md`.

use anyhow::{Context as _, Result, ensure};
use emco_crds::Cluster;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{is, provider, root, wait};

use super::page::{Page, folder, yaml};

pub async fn follow(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    provider(bed, "acme").await?;
    kubectl
        .run(&["wait", "--for=condition=Ready", "--timeout=60s", "clusterproviders.emco.io", "acme"])
        .await?;
    let mut page = Page::read(bed, "clusters.md")?;
    let said = page.run("kubectl emco cluster add acme/berlin --context berlin --labels").await?;
    ensure!(said.contains("acme/berlin is registered and ready"), "{said}");
    // Another level, and then once more, for Git.
    let said = page.run("kubectl emco cluster add acme/berlin --context berlin --level Admin").await?;
    ensure!(said.contains("acme/berlin is registered and ready"), "{said}");
    page.run("kubectl emco role --level Standard --edge-context berlin").await?;
    page.run("kubectl emco cluster add acme/berlin --context berlin --level Admin -o yaml").await?;
    let read = |name: &str| std::fs::read_to_string(folder(bed)?.join(name)).with_context(|| name.to_owned());
    ensure!(read("berlin.yaml")?.contains("kind: Cluster"), "{}", read("berlin.yaml")?);
    ensure!(read("berlin.secret.yaml")?.contains("kind: Secret"), "no Secret");
    let said = page.run("kubectl emco cluster rotate acme/berlin").await?;
    ensure!(said.contains("acme/berlin has new credentials"), "{said}");
    let said = page.run("kubectl emco cluster rotate acme/berlin --context berlin").await?;
    ensure!(said.contains("the old token is ended"), "{said}");
    page.run("kubectl emco cluster add acme/berlin --context berlin --level Admin --renew -o yaml").await?;

    // All rights are taken back, and the cluster is removed, which says what it cannot remove; then the same by hand.
    page.run_on("berlin", "kubectl delete clusterrolebinding,clusterrole emco-hub").await?;
    page.run_on("berlin", "kubectl delete serviceaccount emco-hub").await?;
    for command in ["cordon", "drain", "uncordon"] {
        page.run(&format!("kubectl emco cluster {command} acme/berlin")).await?;
    }
    page.run_to("hub", "kubectl emco cluster remove acme/berlin", 3).await?;
    let account = ["clusterrolebinding,clusterrole", "rolebinding,role", "serviceaccount", "secret"];
    for what in account.into_iter().chain(["configmap hub", "namespace"]) {
        page.run_on("berlin", &format!("kubectl delete {what}")).await?;
    }
    let text = std::fs::read_to_string(root().join("docs/clusters.md"))?;
    let by_hand = yaml(&text).pop().context("the page shows no Cluster")?;
    kubectl.apply(by_hand).await?;
    std::fs::write(folder(bed)?.join("berlin.kubeconfig"), bed.edge("berlin").kubeconfig()?)?;
    page.run("kubectl create secret generic berlin-kubeconfig").await?;
    wait(bed, "acme", "berlin", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True"))
        .await?;
    let said = page.run("kubectl emco clusters -n acme").await?;
    // As printed, but for the age.
    let printed = text.lines().skip_while(|line| !line.starts_with("PROVIDER")).take(2);
    for (line, seen) in printed.zip(said.lines()) {
        let words = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let (mut line, mut seen) = (words(line), words(seen));
        ensure!(line.len() == seen.len(), "{line:?}\n{seen:?}");
        if line.first().is_some_and(|word| word == "acme") {
            line.remove(6);
            seen.remove(6);
        }
        ensure!(line == seen, "{line:?}\n{seen:?}");
    }
    page.end()
}
