//! `backup.md`.

use anyhow::{Result, ensure};
use emco_crds::Cluster;
use emco_crds::conditions::types;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{
    Operator, as_account, chart, chart_map, deployed, deployment, program, project, says,
};
use emco_e2e::package::Package;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;

use super::approving::gone;
use super::page::{Page, folder};

pub fn note() -> Result<Package> {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Values.say | quote }}}\n";
    chart("web", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/note.yaml", template)])
}

pub async fn say(bed: &Bed, revision: i64) -> Result<()> {
    let spec = format!(
        "placement: {{allOf: [{{provider: acme, selector: {{}}}}]}}\noverrideValues: [{{app: web, values: {{say: word-{revision}}}}}]"
    );
    bed.hub().kubectl().apply(&deployment("shop", "till", &[note()?], &spec)).await?;
    deployed(bed, "shop", "till", revision).await.map(drop)
}

/// How far the hub had come when it last worked on the edge.
async fn marked(bed: &Bed) -> Result<u64> {
    let maps: Api<ConfigMap> = bed.edge("berlin").api("emco-system").await?;
    let map = maps.get("hub").await?;
    Ok(map.data.as_ref().and_then(|data| data.get("seen")?.parse().ok()).unwrap_or(0))
}

/// Its commands, on a hub that is not restored: the story of one is told in the soak, and by tests of restores.
pub async fn commands(bed: &Bed) -> Result<()> {
    let mut page = Page::read(bed, "backup.md")?;
    chart_map(bed, "shop", "charts", &[note()?]).await?;
    say(bed, 1).await?;
    page.run("kubectl get secret emco-installation").await?;
    let kept = std::fs::read_to_string(folder(bed)?.join("emco-installation.yaml"))?;
    ensure!(["id:", "digest-key:", "random-key:"].iter().all(|key| kept.contains(key)), "a key is missing");
    page.run("kubectl -n emco-system scale deployment/emco-operator --replicas=0").await?;
    page.run("kubectl -n emco-system scale deployment/emco-operator --replicas=1").await?;
    page.run("kubectl get dig -A").await?;
    ensure!(page.run("kubectl get ecl -A").await?.contains("berlin"));
    let confirmed = page.run("kubectl get ecl -A -o jsonpath=").await?;
    ensure!(!confirmed.contains("annotated"), "nothing is to be confirmed: {confirmed}");
    for command in ["kubectl emco orphans --rebuild --dry-run", "kubectl emco orphans --rebuild"] {
        let found = page.run(command).await?;
        ensure!(found.contains("acme/berlin") && found.contains("known"), "{found}");
    }
    page.end()?;
    gone(bed, "till").await
}

pub async fn follow(bed: &Bed, operator: Operator) -> Result<()> {
    let mut page = Page::read(bed, "backup.md")?;
    project(bed, "shop").await?;
    chart_map(bed, "shop", "charts", &[note()?]).await?;
    say(bed, 1).await?;
    page.run("kubectl get secret emco-installation").await?;
    let kept = std::fs::read_to_string(folder(bed)?.join("emco-installation.yaml"))?;
    ensure!(["id:", "digest-key:", "random-key:"].iter().all(|key| kept.contains(key)), "a key is missing");
    let backup = bed.hub().snapshot().await?;
    // Work goes on between a backup and the day it is needed.
    bed.hub().others_write(500).await?;
    let version = bed.hub().version().await?;
    let mut last = 1;
    while marked(bed).await? <= version {
        last += 1;
        ensure!(last < 60, "the edge is not marked");
        say(bed, last).await?;
    }

    page.run("kubectl -n emco-system scale deployment/emco-operator --replicas=0").await?;
    operator.process().terminate().await?;
    operator.process().ended().await;
    bed.hub().restore_from(&backup).await?;
    page.run("kubectl -n emco-system scale deployment/emco-operator --replicas=1").await?;
    let _operator = Operator::start_as(bed, &program()?, as_account(bed).await?, String::new()).await?;
    says::<Cluster, _>(bed, "acme", "berlin", types::READY, "HubRestored").await?;
    let seen = page.run("kubectl get dig -A").await?;
    ensure!(seen.contains("till"), "{seen}");
    let seen = page.run("kubectl get ecl -A").await?;
    ensure!(seen.contains("HubRestored"), "{seen}");
    let confirmed = page.run("kubectl get ecl -A -o jsonpath=").await?;
    ensure!(confirmed.contains("berlin annotated"), "{confirmed}");
    say(bed, 2).await?;
    for command in ["kubectl emco orphans --rebuild --dry-run", "kubectl emco orphans --rebuild"] {
        let found = page.run(command).await?;
        ensure!(found.contains("acme/berlin") && found.contains("known"), "{found}");
    }
    page.end()
}
