//! `projects.md`, `git-clusters.md` and `helm-compatibility.md`.

use anyhow::{Context as _, Result, ensure};
use emco_crds::LogicalCloud;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart_map, deployed, is, program, root, wait};

use super::approving::{gone, note, say};
use super::page::{Page, folder, yaml};

/// Waits until a logical cloud is ready.
async fn ready(bed: &Bed, name: &str) -> Result<()> {
    wait(bed, "shop", name, |cloud: &LogicalCloud| is(cloud.status.as_ref(), types::READY, "True")).await
}

/// A namespace that is there, and is given over by the command of the page, with the label of this logical cloud.
async fn given_over(bed: &Bed, page: &mut Page<'_>) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    bed.edge("berlin").kubectl().run(&["create", "namespace", "shop-tenant"]).await?;
    let cloud = "{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {name: tenant, namespace: shop}, \
                 spec: {level: Standard, namespace: shop-tenant, clusters: [{provider: acme, cluster: berlin}]}}";
    kubectl.apply(cloud).await?;
    wait(bed, "shop", "tenant", |cloud: &LogicalCloud| {
        let rows = cloud.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
        if rows.iter().any(|row| row.reason == "NotOurs") { Ok(()) } else { Err(format!("{rows:?}")) }
    })
    .await?;
    let of = ["get", "shard", "-n", "shop", "-l", "emco.io/owner-name=tenant"];
    let owner = ["-o", "jsonpath={.items[0].metadata.labels.emco\\.io/owner}"];
    let owner = kubectl.run(&[&of[..], &owner].concat()).await?;
    let label = page.take("kubectl label ns shop-tenant emco.io/owner=")?;
    let (command, _) = label.rsplit_once('=').context("the command has no label")?;
    page.execute("berlin", &format!("{command}={}", owner.trim()), 0).await?;
    ready(bed, "tenant").await
}

/// A member sees a deployment of the project, and an administrator what another one needs.
async fn seen(bed: &Bed, page: &mut Page<'_>) -> Result<()> {
    chart_map(bed, "shop", "charts", &[note()?]).await?;
    say(bed, "till", "one", "").await?;
    deployed(bed, "shop", "till", 1).await?;
    let said = page.run("kubectl emco get shop/till --as vera@example.com").await?;
    ensure!(said.contains("ConfigMap/shop/note") && said.contains("acme/berlin"), "{said}");
    let said = page.run("kubectl emco diff shop/till --as vera@example.com").await?;
    ensure!(said.contains("acme/berlin, revision 1: no difference in 1 object"), "{said}");
    // Pods run nowhere here: `tenants/sees.rs` reads their logs as a member.
    page.take("kubectl emco logs shop/till web --cluster acme/berlin --as vera@example.com")?;
    gone(bed, "till").await?;
    say(bed, "agent", "one", "").await?;
    deployed(bed, "shop", "agent", 1).await?;
    let said = page.run("kubectl emco role shop/agent --permissions").await?;
    ensure!(said.contains("# What shop/agent needs") && said.contains("- configmaps"), "{said}");
    gone(bed, "agent").await
}

pub async fn projects(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let members = "{\"spec\":{\"members\":[{\"role\":\"Approver\",\"subjects\":[{\"kind\":\"User\",\"name\":\"vera@example.com\"}]}]}}";
    kubectl.run(&["patch", "eproj", "shop", "--type=merge", "-p", members]).await?;
    let bound = ["auth", "can-i", "create", "deploymentapprovals.emco.io", "-n", "shop"];
    kubectl.until(&[&bound[..], &["--as", "vera@example.com"]].concat(), "", true).await?;
    let mut page = Page::read(bed, "projects.md")?;
    // 1: no.
    let said = page.run_to("hub", "kubectl auth can-i create deploymentintentgroups", 1).await?;
    ensure!(said.trim() == "no", "{said}");
    let said = page.run("kubectl auth can-i create deploymentapprovals").await?;
    ensure!(said.trim() == "yes", "{said}");
    let said = page.run("kubectl emco clusters -n shop").await?;
    ensure!(said.starts_with("PROVIDER   NAME     LEVEL") && said.contains("acme       berlin"), "{said}");
    seen(bed, &mut page).await?;
    let text = std::fs::read_to_string(root().join("docs/projects.md"))?;
    let team = yaml(&text).into_iter().find(|block| block.contains("\n  name: team\n"));
    kubectl.apply(team.context("the page has no logical cloud team")?).await?;
    ready(bed, "team").await?;
    page.run("kubectl get secret team-kubeconfig -n shop").await?;
    let may = "kubectl --kubeconfig team.kubeconfig --context acme.berlin auth can-i";
    let said = page.run(&format!("{may} create deployments -n shop-team")).await?;
    ensure!(said.trim() == "yes", "{said}");
    let said = page.run_to("hub", &format!("{may} get secrets -n kube-system"), 1).await?;
    ensure!(said.trim() == "no", "{said}");
    given_over(bed, &mut page).await?;
    page.end()
}

/// Nobody runs Flux here, and nobody answers for the branch: what is to be done there is printed.
pub async fn git_clusters(bed: &Bed) -> Result<()> {
    let target = "{apiVersion: emco.io/v1alpha1, kind: GitTarget, metadata: {name: fleet, namespace: acme}, \
                  spec: {url: 'https://127.0.0.1:1/fleet.git', branch: main, folder: hub}}";
    bed.hub().kubectl().apply(target).await?;
    let mut page = Page::read(bed, "git-clusters.md")?;
    let add = page.take("kubectl emco cluster add acme/berlin-1 --context berlin-1 --git fleet")?;
    let said = page.execute("hub", &format!("{add} --timeout 0s"), 0).await?;
    ensure!(said.contains("acme/berlin-1 is registered"), "{said}");
    page.end()
}

/// Renders a chart of a folder with our own engine.
pub async fn helm_compatibility(bed: &Bed) -> Result<()> {
    let folder = folder(bed)?;
    let helm = program()?.with_file_name("emco-helm").canonicalize()?;
    std::os::unix::fs::symlink(helm, folder.join("bin/emco-helm"))?;
    std::fs::create_dir_all(folder.join("chart/templates"))?;
    std::fs::write(folder.join("chart/Chart.yaml"), "apiVersion: v2\nname: chart\nversion: 1.0.0\n")?;
    std::fs::write(
        folder.join("chart/templates/note.yaml"),
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {tag: {{ .Values.image.tag | quote }}, say: {{ .Values.say }}}\n",
    )?;
    std::fs::write(folder.join("over.yaml"), "say: over\n")?;
    let mut page = Page::read(bed, "helm-compatibility.md")?;
    let said = page.run("emco-helm template myrel --namespace myns").await?;
    for words in ["name: myrel", "tag: \"1.2\"", "say: over"] {
        ensure!(said.contains(words), "{words}: {said}");
    }
    page.end()
}
