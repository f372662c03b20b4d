//! Guesses of a tenant at what is in a namespace of others, by plans that nobody carries out.

use anyhow::{Result, ensure};
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::operator::{chart, chart_map, deployment, wait};
use emco_e2e::package::Package;

use super::world::{ON_A, Tenant};

const NAME: &str = "guesser";
/// A namespace on the cluster, with a Secret in it.
const THEIRS: &str = "strongroom";
const SECRET: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: strongroom}
---
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: strongroom}
stringData: {password: swordfish-9c41}
";
const CLOUD: &str = "{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {name: spy}, \
                     spec: {level: Standard, namespace: strongroom}}";
const GUESS: &str = "
apiVersion: v1
kind: Secret
metadata: {name: {{ .Values.secret }}}
stringData: {password: {{ .Values.guess | quote }}}
";
/// Name of the deployment, name of the Secret, and the password.
const GUESSES: [(&str, &str, &str); 3] =
    [("absent", "no-such", "x"), ("wrong", "db", "letmein"), ("right", "db", "swordfish-9c41")];

fn guess(app: &Package, (name, secret, password): (&str, &str, &str)) -> String {
    let spec = format!(
        "{ON_A}\nlogicalCloudRef: {{name: spy}}\ndesiredState: Planned\nsync: {{conflicts: AdoptIfSame}}\n\
         overrideValues: [{{app: guess, values: {{secret: {secret}, guess: {password}}}}}]"
    );
    deployment(NAME, name, std::slice::from_ref(app), &spec)
}

#[tokio::test]
async fn a_plan_tells_nothing_of_a_namespace_of_others() {
    let tenant = Tenant::new(NAME, &["admin", "emco-admin"], "").await.unwrap();
    let bed = tenant.bed;
    bed.explain(async {
        let edge = bed.edge("a");
        edge.kubectl().apply(SECRET).await?;
        tenant.apply(CLOUD).await?;
        wait(bed, NAME, "spy", |cloud: &LogicalCloud| {
            let rows = cloud.status.as_ref().map(|status| status.failing.as_slice()).unwrap_or_default();
            if rows.iter().any(|row| row.reason == "NotOurs") { Ok(()) } else { Err(format!("{rows:?}")) }
        })
        .await?;
        let mark = edge.audit_mark()?;
        let files = [("values.yaml", "secret: db\nguess: x\n"), ("templates/guess.yaml", GUESS)];
        let app = chart("guess", "1.0.0", &files)?;
        chart_map(bed, NAME, "charts", std::slice::from_ref(&app)).await?;
        let mut told = Vec::new();
        for of in GUESSES {
            tenant.apply(&guess(&app, of)).await?;
            told.push(answer(&tenant, of.0).await?);
        }
        ensure!(told.iter().all(Vec::is_empty), "{told:?}");
        let asked: Vec<_> = edge
            .audit_since(mark)?
            .into_iter()
            .filter(|event| event.namespace == THEIRS && event.resource == "secrets")
            .collect();
        ensure!(asked.is_empty(), "{asked:?}");
        edge.kubectl().run(&["delete", "namespace", THEIRS, "--wait=false"]).await.map(drop)
    })
    .await;
}

/// All that a plan says clusters would refuse.
async fn answer(tenant: &Tenant, name: &str) -> Result<Vec<String>> {
    wait(tenant.bed, NAME, name, |dig: &DeploymentIntentGroup| {
        let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
        let apps = pending.map(|pending| pending.apps.as_slice()).unwrap_or_default();
        if apps.is_empty() {
            return Err(format!("{:?}", dig.status));
        }
        Ok(apps.iter().flat_map(|app| app.refused.clone()).collect())
    })
    .await
}
