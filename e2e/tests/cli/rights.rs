//! What is said to users who may not do what they ask for, and that nothing is changed by asking.

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::names::manager;
use emco_e2e::bed::Bed;

use super::rig::{STAGE, apart, file, run, run_as};

/// A user with these rules everywhere, as a file.
pub async fn user(bed: &Bed, name: &str, rules: &str) -> Result<std::path::PathBuf> {
    let role = format!(
        "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {{name: {name}}}
rules:
{rules}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {{name: {name}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {name}}}
subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: {name}}}]
"
    );
    bed.hub().kubectl().apply(&role).await?;
    file(bed, &format!("{name}.kubeconfig"), &bed.hub().kubeconfig_as(name, None)?).await
}

const READS: &str = "- {apiGroups: [emco.io], resources: ['*'], verbs: [get, list, watch]}\n";
const READS_SECRETS: &str = "- {apiGroups: [''], resources: [secrets], verbs: [get, list]}\n";
const READS_LEASES: &str = "- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, list]}\n";
const DELETES_SECRETS: &str = "- {apiGroups: [''], resources: [secrets], verbs: [get, list, delete]}\n";

/// A cluster that nobody answers for, with a Secret as `cluster add` makes it.
async fn guarded(bed: &Bed) -> Result<()> {
    apart(bed).await?;
    let kubeconfig = bed.edge("c").kubeconfig_with_token("none");
    let mut parsed: serde_json::Value = serde_yaml::from_str(&kubeconfig)?;
    parsed["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1".into();
    let objects = format!(
        "
apiVersion: v1
kind: Secret
metadata: {{name: guarded-kubeconfig, namespace: apart}}
data: {{kubeconfig: {}}}
---
apiVersion: emco.io/v1alpha1
kind: Cluster
metadata: {{name: guarded, namespace: apart}}
spec: {{access: {{kubeconfigSecretRef: {{name: guarded-kubeconfig}}}}}}
",
        STANDARD.encode(serde_yaml::to_string(&parsed)?)
    );
    let manager = format!("--field-manager={}", manager::CLI);
    bed.hub().kubectl().run_with(&["apply", "--server-side", &manager, "-f", "-"], &objects).await?;
    // Its finalizers, its condition and what it says of the address are there.
    let said = ["wait", "ecl/guarded", "-n", "apart", "--for=condition=Ready=False", "--timeout=60s"];
    bed.hub().kubectl().run(&said).await?;
    Ok(())
}

/// Everything of it that a command could have changed.
async fn state(bed: &Bed, provider: &str, name: &str) -> Result<String> {
    let path = "jsonpath={range .items[*]}{.kind}{.metadata.uid}{.metadata.generation}{.metadata.deletionTimestamp}{.spec}{.data}{end}";
    let (cluster, secret) = (format!("clusters.emco.io/{name}"), format!("secret/{name}-kubeconfig"));
    bed.hub().kubectl().run(&["get", &cluster, &secret, "-n", provider, "-o", path]).await
}

#[tokio::test]
async fn commands_on_clusters_name_the_right_that_is_missing_and_change_nothing() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        guarded(bed).await?;
        let nobody = file(bed, "none.kubeconfig", &bed.hub().kubeconfig_as("none", None)?).await?;
        let reads = user(bed, "reads", READS).await?;
        let secrets = user(bed, "reads-secrets", &format!("{READS}{READS_SECRETS}")).await?;
        let deletes = user(bed, "deletes-secrets", &format!("{READS}{DELETES_SECRETS}")).await?;
        let before = (state(bed, "apart", "guarded").await?, state(bed, "acme", "a").await?);
        for (who, command, says) in [
            (&nobody, &["cordon", "acme/a"][..], "you may not read cluster acme/a on the hub"),
            (&nobody, &["uncordon", "acme/a"], "you may not read cluster acme/a on the hub"),
            (&nobody, &["drain", "acme/a"], "you may not read cluster acme/a on the hub"),
            (&nobody, &["rotate", "acme/a"], "you may not read cluster acme/a on the hub"),
            (&nobody, &["remove", "apart/guarded"], "you may not read cluster apart/guarded on the hub"),
            (&reads, &["cordon", "acme/a"], "you may not change cluster acme/a on the hub"),
            (&reads, &["uncordon", "acme/a"], "you may not change cluster acme/a on the hub"),
            (&reads, &["drain", "acme/a"], "you may not change cluster acme/a on the hub"),
            (&reads, &["rotate", "acme/a"], "you may not read secret acme/a-kubeconfig on the hub"),
            (
                &reads,
                &["remove", "apart/guarded"],
                "you may not read secret apart/guarded-kubeconfig on the hub",
            ),
            (
                &secrets,
                &["remove", "apart/guarded"],
                "you may not delete secret apart/guarded-kubeconfig on the hub",
            ),
            (&deletes, &["remove", "apart/guarded"], "you may not delete cluster apart/guarded on the hub"),
        ] {
            let said = run_as(bed, who, &[&["cluster"], command].concat()).await?;
            said.is(1, &["error: ", says]);
        }
        ensure!(
            (state(bed, "apart", "guarded").await?, state(bed, "acme", "a").await?) == before,
            "{before:?}"
        );
        // Who may is told what stays on a cluster that does not answer, but for the account that is wanted.
        let said = run(bed, &["cluster", "remove", "apart/guarded", "--keep-account"]).await?;
        said.is(
            3,
            &[
                "apart/guarded is removed",
                "cannot be reached",
                "the claim",
                "Secret apart/guarded-kubeconfig is deleted",
            ],
        );
        ensure!(!said.err.contains("clusterrolebinding"), "{}", said.err);
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn uninstall_names_the_right_that_is_missing_and_changes_nothing() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        let nobody = file(bed, "none.kubeconfig", &bed.hub().kubeconfig_as("none", None)?).await?;
        let reads = user(bed, "reads", READS).await?;
        let before = state(bed, "acme", "a").await?;
        for choice in [&[][..], &["--release", "--yes"], &["--remove", "--yes"]] {
            run_as(bed, &nobody, &[&["uninstall"], choice].concat())
                .await?
                .is(1, &["you may not list cluster providers in all namespaces on the hub"]);
        }
        // Without the Leases nobody knows whether an operator works.
        run_as(bed, &reads, &["uninstall", "--release", "--yes"])
            .await?
            .is(1, &["you may not list leases in all namespaces on the hub"]);
        let leases = user(bed, "reads-leases", &format!("{READS}{READS_LEASES}")).await?;
        run_as(bed, &leases, &["uninstall", "--release", "--yes"])
            .await?
            .is(3, &["you may not read secret acme/a-kubeconfig on the hub", "nothing was changed"]);
        let secrets = user(bed, "reads-both", &format!("{READS}{READS_SECRETS}{READS_LEASES}")).await?;
        let given_up: Vec<&str> = ["acme/a", "acme/b"].iter().flat_map(|id| ["--give-up", id]).collect();
        let release = [&["uninstall", "--release", "--yes"][..], &given_up].concat();
        let said = run_as(bed, &secrets, &release).await?;
        // A cluster of another test that does not answer holds it up before.
        let refused = said.code == Some(1) && said.err.contains("you may not ");
        let held = said.code == Some(3) && said.out.contains("nothing was changed");
        ensure!(refused || held, "{said:?}");
        let remove = ["uninstall", "--remove", "--yes", "--timeout", "20s"];
        let said = run_as(bed, &reads, &remove).await?;
        // What is being deleted by another test at this moment is waited for.
        let refused = said.code == Some(1) && said.err.contains("you may not delete ");
        ensure!(refused || said.code == Some(3), "{said:?}");
        ensure!(state(bed, "acme", "a").await? == before, "{before}");
        Ok(())
    })
    .await;
}
