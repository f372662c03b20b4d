//! EMCO goes: what runs is kept, released or removed, by choice, and `helm uninstall` waits for that choice.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    Operator, SOON, as_account, call, chart, chart_map, deployed, deployment, program, project, provider,
    root,
};
use emco_e2e::programs::Program;
use tokio::process::Command;

use super::in_use::in_force;
use super::{install, upgrade};

const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";
const KINDS: &str = "projects,clusterproviders,clusters,logicalclouds,compositeapps,compositeprofiles,genericactionintents,deploymentintentgroups,appcontexts,syncshards";

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
        let add = ["cluster", "add", &id, "--kubeconfig", &file, "--labels", "tier=edge"];
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
    ensure!(kinds.lines().count() == 11, "{kinds}");
    for kind in kinds.lines() {
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
                 validatingadmissionpolicy,validatingadmissionpolicybinding";
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
    bed.hub().kubectl().run(&["get", KINDS, "-A", "-o", "name"]).await
}

#[tokio::test]
async fn a_released_installation_leaves_what_runs_and_nothing_of_its_own() {
    let (bed, operator) = stage(&["a", "b"]).await.unwrap();
    bed.explain(Box::pin(async {
        let before = on_hub(&bed).await?;
        uninstall(&bed, &[]).await?.is(
            2,
            &[
                "1 project, 1 deployment, 2 clusters of 1 provider; 2 objects on clusters",
                "--keep",
                "--release",
                "--remove",
                "nothing was changed",
            ],
        );
        uninstall(&bed, &["--release"]).await?.is(2, &["confirm it with --yes"]);
        uninstall(&bed, &["--release", "--remove"]).await?.is(2, &["cannot be used with"]);
        uninstall(&bed, &["--release", "--dry-run"]).await?.is(0, &["would be released (dry run)"]);
        uninstall(&bed, &["--remove", "--dry-run"]).await?.is(0, &["would be removed (dry run)"]);
        uninstall(&bed, &["--keep"])
            .await?
            .is(0, &["helm uninstall emco --namespace emco-system --no-hooks"]);
        ensure!(on_hub(&bed).await? == before);

        until_held(&bed).await?;
        // The real Helm is refused, however often, and takes nothing away.
        let whole = release(&bed).await?;
        ensure!(whole.contains("deployment.apps/emco-operator"), "{whole}");
        for _ in 0..2 {
            let refused = helm_uninstall(&bed, &[]).await.unwrap_err().to_string();
            let words = "choose with `kubectl emco uninstall` what becomes of what runs";
            ensure!(refused.contains(words), "{refused}");
            ensure!(release(&bed).await? == whole);
        }
        upgrade(&bed, "replicas=1").await?;
        ensure!(release(&bed).await? == whole);
        // Turned off, and on again, while there is work.
        upgrade(&bed, "policies.holdUninstall=false").await?;
        ensure!(!release(&bed).await?.contains("emco-uninstall"));
        upgrade(&bed, "policies.holdUninstall=true").await?;
        ensure!(release(&bed).await? == whole);

        check_says(
            &bed,
            "ok    account      system:serviceaccount:emco-system:emco-operator may do the operator's work",
        )
        .await?;
        check_says(
            &bed,
            &format!(
                "ok    installed    operator {}; clusters may not be at loopback",
                env!("CARGO_PKG_VERSION")
            ),
        )
        .await?;
        upgrade(&bed, "operator.extraArgs={--allow-edge-address=127.0.0.0/8}").await?;
        check_says(&bed, "clusters may besides be at 127.0.0.0/8").await?;

        let notes = (note(&bed, "a").await?, note(&bed, "b").await?);
        let release_now = ["--release", "--yes", "--timeout", "2s"];
        uninstall(&bed, &release_now)
            .await?
            .is(3, &["an operator works on this hub", "Nothing was released"]);
        operator.process().terminate().await?;
        operator.process().ended().await;
        bed.hub().kubectl().run(&["delete", "clusterrolebinding", "emco-operator"]).await?;
        check_says(
            &bed,
            "FAIL  account      system:serviceaccount:emco-system:emco-operator may not watch clusters",
        )
        .await?;
        bed.edge("b").refuse().await?;
        uninstall(&bed, &release_now).await?.is(3, &["acme/b holds it up", "--give-up acme/b"]);
        ensure!(on_hub(&bed).await? == before);
        bed.edge("b").restore().await?;
        uninstall(&bed, &["--release", "--yes"]).await?.is(
            0,
            &[
                "acme/a is off the hub",
                "acme/b is off the hub",
                "these namespaces stay",
                "helm uninstall emco --namespace emco-system",
            ],
        );
        ensure!(on_hub(&bed).await?.is_empty(), "{}", on_hub(&bed).await?);
        for edge in ["a", "b"] {
            is_clean(&bed, edge).await?;
        }
        ensure!((note(&bed, "a").await?, note(&bed, "b").await?) == notes, "what runs was touched");
        // Nothing is held any more: not the namespaces, not the charts.
        bed.hub().kubectl().run(&["delete", "namespace", "shop", "acme", "--timeout=60s"]).await?;
        uninstall(&bed, &["--release", "--yes"]).await?.is(0, &["nothing of EMCO's work is left"]);
        helm_uninstall(&bed, &[]).await?;
        ensure!(release(&bed).await?.is_empty(), "{}", release(&bed).await?);
        Ok(())
    }))
    .await;
}

/// What an interrupted run leaves of a cluster: it said that it removes the account, and did.
async fn half_released(bed: &Bed, cluster: &str) -> Result<()> {
    let annotate = ["annotate", "ecl", cluster, "-n", "acme", "emco.io/released=true"];
    bed.hub().kubectl().run(&annotate).await?;
    let edge = bed.edge(cluster).kubectl();
    edge.run(&["delete", "clusterrolebinding,clusterrole", "emco-hub"]).await?;
    edge.run(&["delete", "namespace", "emco-system"]).await.map(drop)
}

#[tokio::test]
async fn an_interrupted_release_goes_on_and_gives_up_what_does_not_answer() {
    let (bed, operator) = stage(&["a", "b"]).await.unwrap();
    bed.explain(Box::pin(async {
        let notes = (note(&bed, "a").await?, note(&bed, "b").await?);
        operator.process().terminate().await?;
        operator.process().ended().await;
        half_released(&bed, "a").await?;
        bed.edge("b").refuse().await?;
        uninstall(&bed, &["--release", "--yes"]).await?.is(3, &["acme/b holds it up", "nothing was changed"]);
        let said = uninstall(&bed, &["--release", "--yes", "--give-up", "acme/b"]).await?;
        said.is(
            3,
            &[
                "on acme/b stays what cannot be removed from here, since it is given up",
                "the account emco-hub in namespace emco-system",
                "the claim, ConfigMap emco-system/hub",
                "kubectl delete configmap hub -n emco-system",
                "acme/a is off the hub",
                "acme/b is off the hub",
            ],
        );
        ensure!(!said.text.contains("on acme/a stays"), "{}", said.text);
        ensure!(on_hub(&bed).await?.is_empty(), "{}", on_hub(&bed).await?);
        bed.edge("b").restore().await?;
        ensure!((note(&bed, "a").await?, note(&bed, "b").await?) == notes, "what runs was touched");
        let claim = ["get", "configmap/hub", "serviceaccount/emco-hub", "-n", "emco-system", "-o", "name"];
        bed.edge("b").kubectl().run(&claim).await?;
        is_clean(&bed, "a").await?;
        uninstall(&bed, &["--release", "--yes"]).await?.is(0, &["nothing of EMCO's work is left"]);
        Ok(())
    }))
    .await;
}

/// The policy by which Clusters in use are not deleted is in force.
async fn in_use_is_refused(bed: &Bed) -> Result<()> {
    upgrade(bed, "policies.refuseDeletionInUse=true").await?;
    in_force(bed, &["clusters.emco.io", "a", "-n", "acme"]).await
}

#[tokio::test]
async fn a_removed_installation_leaves_nothing_on_clusters_and_names_what_holds_it() {
    let (bed, operator) = stage(&["a"]).await.unwrap();
    bed.explain(Box::pin(async {
        // Kept: the chart goes with its operator, both come back, and nothing else changes.
        let (objects, running) = (on_hub(&bed).await?, note(&bed, "a").await?);
        helm_uninstall(&bed, &["--no-hooks"]).await?;
        operator.process().terminate().await?;
        operator.process().ended().await;
        ensure!(release(&bed).await?.is_empty(), "{}", release(&bed).await?);
        let _operator = reinstall(&bed).await?;
        ensure!(on_hub(&bed).await? == objects && note(&bed, "a").await? == running);
        until_held(&bed).await?;
        let refused = helm_uninstall(&bed, &[]).await.unwrap_err().to_string();
        ensure!(refused.contains("kubectl emco uninstall"), "{refused}");

        bed.edge("a").refuse().await?;
        let remove = ["--remove", "--yes"];
        uninstall(&bed, &[&remove[..], &["--timeout", "20s"]].concat()).await?.is(
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
        uninstall(&bed, &remove).await?.is(
            0,
            &["0 deployments left", "0 projects left", "acme/a is removed from the hub", "0 providers left"],
        );
        is_clean(&bed, "a").await?;
        let gone = bed.edge("a").kubectl().run(&["get", "ns", "-o", "name"]).await?;
        ensure!(!gone.contains("namespace/shop"), "{gone}");
        ensure!(on_hub(&bed).await?.is_empty(), "{}", on_hub(&bed).await?);
        helm_uninstall(&bed, &[]).await.map(drop)
    }))
    .await;
}
