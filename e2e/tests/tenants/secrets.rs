//! Secrets of every sort in work that fails: none stands in a log, an Event, a status, a metric or what a command prints.

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{Cluster, CompositeApp, DeploymentIntentGroup};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, chart_map, cluster, deployment, is, program, says, wait};
use serde_json::json;
use tokio::process::Command;

use super::world::{ON_A, Tenant, get};

/// Refused by the cluster, which would quote both.
const BROKEN: &str = "
apiVersion: v1
kind: Secret
metadata: {name: pin}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: {{ .Values.pin }}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web, imagePullPolicy: {{ .Values.pull }}}]}
";
const NAMESPACE: &str = "leaky";

/// Values, a login of charts that no server is asked with, and the two objects that use them.
fn objects() -> String {
    let secret = |name: &str, data: serde_json::Value| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE},
            "stringData": data,
        })
    };
    let profile = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeProfile", "metadata": {"name": "pins", "namespace": NAMESPACE},
        "spec": {"apps": [{"app": "web", "valuesFrom": [{"kind": "Secret", "name": "pins"}]}]},
    });
    let app = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": {"name": "far", "namespace": NAMESPACE},
        "spec": {"apps": [{"name": "far", "chart": {
            "repository": {"url": "https://127.0.0.1:9/charts", "name": "far", "version": "1.0.0"},
            "secretRef": {"name": "login"},
        }}]},
    });
    json!({"apiVersion": "v1", "kind": "List", "items": [
        secret("pins", json!({"values.yaml": "pin: planted-pin-4f6a\npull: planted-pull-4f6b\n"})),
        secret("login", json!({"username": "ann", "password": "planted-login-4f6c"})),
        profile,
        app,
    ]})
    .to_string()
}

#[tokio::test]
async fn no_secret_of_the_hub_stands_in_anything_that_people_read() {
    let (bed, _) = get().await.unwrap();
    let tenant = Tenant::new(NAMESPACE, &["admin", "emco-admin"], "").await.unwrap();
    bed.explain(async {
        tenant.ready("default").await?;
        let web = chart("web", "1.0.0", &[("templates/web.yaml", BROKEN)])?;
        chart_map(bed, NAMESPACE, "charts", std::slice::from_ref(&web)).await?;
        tenant.apply(&objects()).await?;
        let spec = format!("{ON_A}\ncompositeProfileRef: {{name: pins}}");
        tenant.apply(&deployment(NAMESPACE, "shop", &[web], &spec)).await?;
        says::<CompositeApp, _>(bed, NAMESPACE, "far", types::READY, "ChartSourceNotAllowed").await?;
        wait(bed, NAMESPACE, "shop", |dig: &DeploymentIntentGroup| {
            let rows = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
            if rows.iter().any(|row| row.message.contains("withheld")) {
                Ok(())
            } else {
                Err(format!("{rows:?}"))
            }
        })
        .await?;
        a_token_that_is_refused(bed).await?;

        let secrets = bed.secrets().await?;
        // The search knows them all: kubeconfig, token, values, logins, keys of the installation.
        for planted in ["planted-pin-4f6a", "planted-pull-4f6b", "planted-login-4f6c", "planted-token-4f6d"] {
            ensure!(secrets.shown_in(planted).is_some(), "{planted} is not searched for");
        }
        for (what, text) in [
            ("log, Events and statuses", bed.readable().await?),
            ("metrics", bed.metrics().await?),
            ("kubectl emco", printed(bed).await?),
        ] {
            ensure!(text.len() > 500, "{what}: hardly anything was read: {text}");
            let shown = secrets.shown_in(&text);
            ensure!(shown.is_none(), "{what}: {}", shown.unwrap_or_default());
        }
        ensure!(
            bed.readable().await?.contains("emco_reconciles_total"),
            "the search of all tests reads no metrics"
        );
        ensure!(!bed.printed().is_empty(), "nor what commands print");
        Ok(())
    })
    .await;
}

/// A cluster whose API server does not know the token.
async fn a_token_that_is_refused(bed: &Bed) -> Result<()> {
    let kubeconfig = bed.edge("a").kubeconfig_with_token("planted-token-4f6d");
    emco_e2e::operator::secret(bed, "vault", "stranger", &kubeconfig).await?;
    bed.hub().kubectl().apply(&cluster("vault", "stranger")).await?;
    wait(bed, "vault", "stranger", |cluster: &Cluster| {
        let ready = is(cluster.status.as_ref(), types::READY, "True");
        match ready {
            Err(said) if said.contains("Unauthorized") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    bed.hub().kubectl().run(&["delete", "ecl", "stranger", "-n", "vault", "--wait=false"]).await.map(drop)
}

/// What the commands say of what fails.
async fn printed(bed: &Bed) -> Result<String> {
    let mut text = String::new();
    for args in [
        &["status", "leaky/shop"][..],
        &["status", "leaky/shop", "-o", "json"],
        &["plan", "leaky/shop"],
        &["diff", "leaky/shop"],
        &["clusters"],
    ] {
        let mut command = Command::new(program()?.with_file_name("kubectl-emco"));
        command
            .args(args)
            .env("KUBECONFIG", bed.hub().kubectl().kubeconfig())
            .env("HOME", bed.dir())
            .kill_on_drop(true);
        let output = bed.hear(&mut command).await.context("kubectl-emco does not start")?;
        text.push_str(&String::from_utf8_lossy(&output.stdout));
        text.push_str(&String::from_utf8_lossy(&output.stderr));
    }
    Ok(text)
}
