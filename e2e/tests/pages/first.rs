//! `first-deployment.md`.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, CompositeApp};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, deployed, is, ours, root, wait};
use emco_e2e::wait::wait_until_gone;
use serde_json::Value;

use super::more;
use super::page::{Page, folder, yaml};

/// Applies what the page shows, and tries the commands of other pages on it.
pub async fn follow(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    // The page before has registered the same cluster.
    kubectl.run(&["delete", "ecl", "berlin", "-n", "acme", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<Cluster>("acme").await?, "berlin", SOON).await?;
    kubectl.run(&["delete", "secret", "berlin-kubeconfig", "-n", "acme"]).await?;

    let text = std::fs::read_to_string(root().join("docs/first-deployment.md"))?;
    let [platform, cluster, application] = yaml(&text)[..] else { anyhow::bail!("other blocks than before") };
    let mut page = Page::read(bed, "first-deployment.md")?;
    kubectl.apply(platform).await?;
    std::fs::write(folder(bed)?.join("berlin.kubeconfig"), bed.edge("berlin").kubeconfig()?)?;
    page.run("kubectl create secret generic berlin-kubeconfig").await?;
    kubectl.apply(cluster).await?;
    wait(bed, "acme", "berlin", |cluster: &Cluster| is(cluster.status.as_ref(), types::READY, "True"))
        .await?;
    same(&text, &page.run("kubectl get ecl -A").await?, &["NAMESPACE", "acme"], &[6, 7])?;

    kubectl.run(&["wait", "--for=create", "namespace/shop", "--timeout=60s"]).await?;
    storefront(&folder(bed)?)?;
    let said = page.run("kubectl emco chart push storefront -n shop").await?;
    for (line, seen) in pushed(&text)?.iter().zip(said.lines()) {
        // How long it is, and its digest, are those of another chart.
        let words = |line: &str| line.split(": ").next().unwrap_or_default().to_owned();
        ensure!(words(line) == words(seen), "the page prints {line}, and it is {seen}");
    }
    more::gitops(bed, &without_the_internet(application)?).await?;
    deployed(bed, "shop", "shop", 1).await?;
    // One cluster here, three on the page; and the age.
    same(&text, &page.run("kubectl get dig -n shop").await?, &["NAME ", "shop "], &[4, 6])?;
    ensure!(ours(bed, "berlin", "configmaps", Some("shop")).await? == ["ConfigMap/shop/storefront"]);
    more::charts(bed).await?;
    more::troubleshooting(bed).await?;
    page.run("kubectl delete dig shop").await?;
    ensure!(ours(bed, "berlin", "configmaps", Some("shop")).await?.is_empty(), "something is left");
    bed.hub().api::<CompositeApp>("shop").await?.get("shop").await.context("it was not to be deleted")?;
    page.end()
}

/// A chart in a folder of the reader's.
fn storefront(reader: &Path) -> Result<()> {
    let folder = reader.join("storefront");
    std::fs::create_dir_all(folder.join("templates"))?;
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: storefront}\ndata: {turn: \"{{ .Values.turn }}\"}\n";
    for (name, text) in [
        ("Chart.yaml", "apiVersion: v2\nname: storefront\nversion: 1.2.0\n"),
        ("values.yaml", "turn: 1\n"),
        ("templates/note.yaml", note),
    ] {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// What the page prints below the command that pushes.
fn pushed(page: &str) -> Result<Vec<&str>> {
    let (_, rest) = page.split_once("$ kubectl emco chart push storefront -n shop\n").context("no push")?;
    let lines: Vec<&str> = rest.lines().take_while(|line| *line != "```").collect();
    ensure!(lines.len() == 2, "other lines than before: {lines:?}");
    Ok(lines)
}

/// The application without the app whose chart is on the internet.
fn without_the_internet(application: &str) -> Result<String> {
    let mut documents = Vec::new();
    for document in application.split("\n---\n") {
        let mut object: Value = serde_yaml::from_str(document)?;
        if let Some(apps) = object.pointer_mut("/spec/apps").and_then(Value::as_array_mut) {
            ensure!(apps.len() == 2, "other apps than before: {apps:?}");
            apps.retain(|app| app.pointer("/chart/repository").is_none());
        }
        documents.push(object.to_string());
    }
    Ok(documents.join("\n---\n"))
}

/// The lines of a table that begin so are as printed, but for some columns.
fn same(page: &str, seen: &str, begin: &[&str], but: &[usize]) -> Result<()> {
    let words = |text: &str, begins: &str| -> Result<Vec<String>> {
        let line = text.lines().find(|line| line.starts_with(begins));
        let line = line.with_context(|| format!("no line begins with {begins:?}: {text}"))?;
        Ok(line.split_whitespace().map(str::to_owned).collect())
    };
    let (heads, row) = (begin[0], begin[1]);
    ensure!(words(page, heads)? == words(seen, heads)?, "other columns: {seen}");
    let (printed, seen) = (words(page, row)?, words(seen, row)?);
    ensure!(printed.len() == seen.len(), "{printed:?}\n{seen:?}");
    for (at, (printed, seen)) in printed.iter().zip(&seen).enumerate() {
        ensure!(but.contains(&at) || printed == seen, "the page prints {printed}, and it is {seen}");
    }
    Ok(())
}
