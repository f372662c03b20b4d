//! Prints what hub and edges say now, and how people can ask them themselves.

use anyhow::Result;

use super::screen::Screen;
use super::stage::{EDGES, Stage};

/// Where packs are: the manifests of all revisions.
const OPERATOR: &str = "emco-system";

/// What the hub says, then what the edges have.
pub async fn status(stage: &Stage, screen: &Screen, project: &str) -> Result<()> {
    screen.step("What the hub says, and what the edges have");
    stage.kubectl(screen, &["get", "dig,capp,lc", "-n", project, "-o", "wide"]).await?;
    stage.kubectl(screen, &["get", "ecl", "-A"]).await?;
    stage.kubectl(screen, &["get", "actx,shard", "-n", project]).await?;
    for (edge, ..) in EDGES {
        stage.kubectl_on(screen, edge, &["get", "deploy,sts,ds,pod", "-n", project]).await?;
    }
    Ok(())
}

/// Commands to copy.
pub fn around(stage: &Stage, screen: &Screen, project: &str) {
    screen.step("Looking around");
    let kubectl = stage.bed.hub().kubectl();
    let programs = kubectl.program().parent().map(|folder| folder.display().to_string()).unwrap_or_default();
    let mut lines = vec![
        "In another terminal:".to_owned(),
        format!("  export PATH={programs}:$PATH"),
        format!("  export KUBECONFIG={}", kubectl.kubeconfig().display()),
        format!("  kubectl get dig -n {project} -w"),
        format!("  kubectl describe dig -n {project}"),
        format!("  kubectl edit dig -n {project}          # change the placement, the values, anything"),
        "  kubectl get capp,cprof,lc,ecl,eproj,cprov -A".to_owned(),
        format!("  kubectl get actx,shard -n {project} -o yaml"),
        format!("  kubectl get configmap,secret -n {OPERATOR}    # packs: the manifests of all revisions"),
    ];
    for (edge, ..) in EDGES {
        let kubeconfig = stage.bed.edge(edge).kubectl().kubeconfig().display().to_string();
        lines.push(format!("  kubectl --kubeconfig {kubeconfig} get all -n {project}    # {edge}"));
    }
    lines.push(format!("  tail -f {}", stage.operator.process().log().display()));
    screen.say(&lines.join("\n"));
}
