//! EMCO goes: what runs is kept, released or removed, by choice, and `helm uninstall` waits for that choice.

mod soak;

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    Operator, SOON, as_account, call, chart, chart_map, cluster, deployed, deployment, program, project,
    provider, root, secret,
};
use emco_e2e::programs::Program;
use tokio::process::Command;

use super::in_use::{in_force, the_api_server_understands_all_policies};
use super::{install, upgrade};

const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";

/// It said this, with this exit code.
struct Said {
    text: String,
    code: Option<i32>,
}

impl Said {
    #[track_caller]
    fn is(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{}", self.text);
        for word in words {
            assert!(self.text.contains(word), "{word:?} is not in:\n{}", self.text);
        }
    }
}

/// `kubectl emco`, as the administrator of the hub.
async fn emco(bed: &Bed, args: &[&str]) -> Result<Said> {
    let mut command = Command::new(program()?.with_file_name("kubectl-emco"));
    command
        .args(args)
        .env("KUBECONFIG", bed.hub().kubectl().kubeconfig())
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    let output = bed.hear(&mut command).await?;
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    Ok(Said { text, code: output.status.code() })
}

async fn uninstall(bed: &Bed, args: &[&str]) -> Result<Said> {
    emco(bed, &[&["uninstall"], args].concat()).await
}

/// The charts, an operator, and a deployment on each edge.
async fn stage(edges: &[&str]) -> Result<(Bed, Operator)> {
    let mut spec = BedSpec::default().with(PlaneSpec::new("hub", Parts::Controllers)).with_helm();
    for edge in edges {
        spec = spec.with(PlaneSpec::new(edge, Parts::Controllers).proxied());
    }
    let bed = Bed::start(spec).await?;
    let told = install(&bed).await?;
    let operator = Operator::start_as(&bed, &program()?, as_account(&bed).await?, told).await?;
    provider(&bed, "acme").await?;
    for edge in edges {
        let file = bed.dir().join(format!("{edge}.kubeconfig"));
        tokio::fs::write(&file, bed.edge(edge).kubeconfig()?).await?;
        let (file, id) = (file.display().to_string(), format!("acme/{edge}"));
        let add = ["cluster", "add", &id, "--kubeconfig", &file, "--labels", "tier=edge", "--level", "Admin"];
        emco(&bed, &add).await?.is(0, &["is registered and ready"]);
    }
    project(&bed, "shop").await?;
    let note = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: one}\n";
    let charts = [chart("note", "1.0.0", &[("templates/note.yaml", note)])?];
    chart_map(&bed, "shop", "charts", &charts).await?;
    bed.hub().kubectl().apply(&deployment("shop", "till", &charts, EVERYWHERE)).await?;
    deployed(&bed, "shop", "till", 1).await?;
    Ok((bed, operator))
}

/// The chart's rights of the operator's account, as `check` says.
async fn check_says(bed: &Bed, words: &str) -> Result<()> {
    let said = emco(bed, &["check"]).await?;
    ensure!(said.text.contains(words), "{}", said.text);
    Ok(())
}

async fn helm_uninstall(bed: &Bed, more: &[&str]) -> Result<String> {
    let args = [&["uninstall", "emco", "--namespace", "emco-system"], more].concat();
    call(bed, bed.programs().path(Program::Helm)?, &args).await
}

/// The chart again, and its operator with the account that came with it: tokens of the account before are worth nothing.
async fn reinstall(bed: &Bed) -> Result<Operator> {
    let chart = root().join("charts/emco").display().to_string();
    let args = ["install", "emco", &chart, "--namespace", "emco-system"];
    let told = call(bed, bed.programs().path(Program::Helm)?, &args).await?;
    Operator::start_as(bed, &program()?, as_account(bed).await?, told).await
}

/// Servers heed a new policy after a moment.
async fn until_held(bed: &Bed) -> Result<()> {
    let dry = ["delete", "configmap", "emco-uninstall", "-n", "emco-system", "--dry-run=server"];
    bed.hub().kubectl().until(&dry, "", false).await
}

/// What is being deleted and has to wait says so in the table of its kind. (A CompositeApp does not wait for a deployment that is
/// being deleted: that needs its inventory only. A Cluster would go without its account.)
async fn every_table_has_a_reason(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let waiting = [
        ("projects.emco.io", "shop", "shop"),
        ("logicalclouds.emco.io", "default", "shop"),
        ("clusterproviders.emco.io", "acme", "acme"),
        ("deploymentintentgroups.emco.io", "till", "shop"),
    ];
    // Nothing that is being deleted waits without a column for it; objects without conditions of their own say since when.
    let kinds = kubectl.run(&["api-resources", "--api-group=emco.io", "-o", "name"]).await?;
    ensure!(kinds.lines().count() == emco_crds::kinds::ALL.len(), "{kinds}");
    // A question has no finalizer: it never waits.
    for kind in kinds.lines().filter(|kind| *kind != "deploymentviews.emco.io") {
        let path = "jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}";
        let columns = kubectl.run(&["get", "crd", kind, "-o", path]).await?;
        let has = |name: &str| columns.split(' ').any(|column| column == name);
        ensure!(has("Reason"), "{kind}: {columns}");
        let generated = ["syncshards.emco.io", "appcontexts.emco.io"].contains(&kind);
        ensure!(has("Deleted") == generated, "{kind}: {columns}");
    }
    for (kind, name, namespace) in waiting {
        kubectl.run(&["delete", kind, name, "-n", namespace, "--wait=false"]).await?;
        let seen = async {
            loop {
                let table = kubectl.run(&["get", kind, name, "-n", namespace]).await?;
                let mut lines = table.lines();
                let header = lines.next().unwrap_or_default();
                let at = header.find("REASON").with_context(|| format!("{kind} has no REASON: {table}"))?;
                let reason = lines.next().and_then(|line| line.get(at..)?.split_whitespace().next());
                if matches!(reason, Some("Terminating" | "HeldBy" | "InUse")) {
                    return Ok(());
                }
                tokio::time::sleep(Duration::from_millis(500)).await;
            }
        };
        let seen: Result<()> =
            tokio::time::timeout(SOON, seen).await.with_context(|| format!("{kind} does not say so"))?;
        seen?;
    }
    Ok(())
}

/// What Helm would take away.
async fn release(bed: &Bed) -> Result<String> {
    let kinds = "deployment,serviceaccount,clusterrole,clusterrolebinding,role,rolebinding,\
                 validatingadmissionpolicy,validatingadmissionpolicybinding,flowschema";
    let selector = "app.kubernetes.io/instance=emco";
    bed.hub().kubectl().run(&["get", kinds, "-A", "-l", selector, "-o", "name"]).await
}

async fn note(bed: &Bed, edge: &str) -> Result<String> {
    let path = "jsonpath={.metadata.uid} {.metadata.resourceVersion} {.data.say}";
    bed.edge(edge).kubectl().run(&["get", "configmap", "note", "-n", "shop", "-o", path]).await
}

async fn is_clean(bed: &Bed, edge: &str) -> Result<()> {
    for gone in ["clusterrole/emco-hub", "clusterrolebinding/emco-hub", "namespace/emco-system"] {
        bed.edge(edge).kubectl().run(&["wait", gone, "--for=delete", "--timeout=60s"]).await?;
    }
    Ok(())
}

async fn on_hub(bed: &Bed) -> Result<String> {
    let all: Vec<String> =
        emco_crds::kinds::ALL.iter().map(|row| format!("{}.emco.io", row.plural())).collect();
    bed.hub().kubectl().run(&["get", &all.join(","), "-A", "-o", "name"]).await
}

/// Makes a Cluster that nobody answers for, of a provider that grants it to nobody.
async fn lose(bed: &Bed) -> Result<()> {
    let objects = "
apiVersion: v1
kind: Namespace
metadata: {name: lost, labels: {emco.io/provider: lost}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: lost}
spec: {}
";
    bed.hub().kubectl().apply(objects).await?;
    let nobody = bed.edge("a").kubeconfig()?.replace("https://127.0.0.1:", "https://127.0.0.2:");
    secret(bed, "lost", "b", &nobody).await?;
    bed.hub().kubectl().apply(&cluster("lost", "b")).await?;
    let said = ["wait", "ecl/b", "-n", "lost", "--for=condition=Ready=False", "--timeout=60s"];
    bed.hub().kubectl().run(&said).await.map(drop)
}

#[tokio::test]
async fn a_released_installation_leaves_what_runs_and_nothing_of_its_own() {
    let (bed, operator) = stage(&["a"]).await.unwrap();
    bed.explain(Box::pin(async {
        lose(&bed).await?;
        let account = "system:serviceaccount:emco-system:emco-operator may do the operator's work";
        check_says(&bed, &format!("ok    account      {account}")).await?;
        let (before, running) = (on_hub(&bed).await?, note(&bed, "a").await?);
        let look = uninstall(&bed, &[]).await?;
        look.is(0, &["1 project, 1 deployment", "--keep", "--release", "--remove", "nothing was changed"]);
        ensure!(!look.text.contains("error"), "{}", look.text);
        uninstall(&bed, &["--yes"])
            .await?
            .is(2, &["--yes confirms a choice", "--keep, --release or --remove"]);
        ensure!(on_hub(&bed).await? == before);
        until_held(&bed).await?;
        // The real Helm is refused, and takes nothing away.
        let whole = release(&bed).await?;
        let refused = helm_uninstall(&bed, &[]).await.unwrap_err().to_string();
        let words = "choose with `kubectl emco uninstall` what becomes of what runs";
        ensure!(refused.contains(words) && release(&bed).await? == whole, "{refused}");
        // With the wrong namespace no Lease is seen, while the operator works.
        for how in [&["--release", "--dry-run"][..], &["--release", "--yes"]] {
            let wrong = [how, &["--operator-namespace", "no-such"]].concat();
            let words = ["an operator works in namespace emco-system", "--operator-namespace emco-system"];
            uninstall(&bed, &wrong).await?.is(2, &words);
        }
        ensure!(on_hub(&bed).await? == before);
        let now = ["--release", "--yes", "--timeout", "2s"];
        let early = [&now[..], &["--give-up", "lost/b"]].concat();
        uninstall(&bed, &early).await?.is(3, &["an operator works on this hub", "Nothing was released"]);
        operator.process().terminate().await?;

        // Kept: the chart goes, and nothing else.
        helm_uninstall(&bed, &["--no-hooks"]).await?;
        ensure!(release(&bed).await?.is_empty(), "{}", release(&bed).await?);
        ensure!(on_hub(&bed).await? == before && note(&bed, "a").await? == running);
        uninstall(&bed, &now).await?.is(3, &["lost/b holds it up", "--give-up lost/b"]);
        ensure!(on_hub(&bed).await? == before);
        uninstall(&bed, &["--release", "--yes", "--give-up", "lost/b"]).await?.is(
            3,
            &[
                "on lost/b stays what cannot be removed from here, since it is given up",
                "acme/a is off the hub",
                "lost/b is off the hub",
            ],
        );
        ensure!(on_hub(&bed).await?.is_empty(), "{}", on_hub(&bed).await?);
        is_clean(&bed, "a").await?;
        ensure!(note(&bed, "a").await? == running, "what runs was touched");
        uninstall(&bed, &["--release", "--yes"]).await?.is(0, &["nothing of EMCO's work is left"]);
        Ok(())
    }))
    .await;
}

/// What a StatefulSet leaves in the namespace of its deployment.
const DATA: &str = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: shop}, \
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}}";

/// The policy by which Clusters in use are not deleted is in force.
async fn in_use_is_refused(bed: &Bed) -> Result<()> {
    upgrade(bed, "policies.refuseDeletionInUse=true").await?;
    in_force(bed, &["clusters.emco.io", "a", "-n", "acme"]).await?;
    the_api_server_understands_all_policies(bed).await
}

#[tokio::test]
async fn a_removed_installation_leaves_nothing_on_clusters_and_names_what_holds_it() {
    let (bed, _operator) = stage(&["a"]).await.unwrap();
    bed.explain(Box::pin(async {
        bed.edge("a").kubectl().apply(DATA).await?;
        bed.edge("a").refuse().await?;
        let look = ["annotate", "ecl", "a", "-n", "acme", "emco.io/requestedAt=refused"];
        bed.hub().kubectl().run(&look).await?;
        let seen = ["wait", "ecl/a", "-n", "acme", "--for=condition=Ready=False", "--timeout=60s"];
        bed.hub().kubectl().run(&seen).await?;
        let remove = ["--remove", "--yes"];
        uninstall(&bed, &[&remove[..], &["--timeout", "10s"]].concat()).await?.is(
            3,
            &[
                "1 deployment left",
                "DeploymentIntentGroup/shop/till holds it up",
                "kubectl annotate",
                "emco.io/abandon=",
                "run this again to go on",
            ],
        );
        every_table_has_a_reason(&bed).await?;
        // The Cluster may not be deleted before the operator has said that nothing uses it any more.
        in_use_is_refused(&bed).await?;
        bed.edge("a").restore().await?;
        let said = uninstall(&bed, &remove).await?;
        said.is(
            0,
            &[
                "0 deployments left",
                "0 projects left",
                "on acme/a stays what deployments left:\n  namespace shop with 1 volume claim: data\n",
                "acme/a is removed from the hub",
                "0 providers left",
            ],
        );
        is_clean(&bed, "a").await?;
        // The data is there still, and goes with the command that was printed.
        bed.edge("a").kubectl().run(&["get", "pvc", "data", "-n", "shop"]).await?;
        let command = said.text.lines().find_map(|line| line.strip_prefix("  kubectl delete namespace "));
        let space = command.context("no command removes what stays")?;
        bed.edge("a").kubectl().run(&["delete", "namespace", space]).await?;
        let gone = bed.edge("a").kubectl().run(&["get", "ns", "-o", "name"]).await?;
        ensure!(!gone.contains("namespace/shop"), "{gone}");
        ensure!(on_hub(&bed).await?.is_empty(), "{}", on_hub(&bed).await?);
        helm_uninstall(&bed, &[]).await.map(drop)
    }))
    .await;
}
