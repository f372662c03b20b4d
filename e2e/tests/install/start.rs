//! The start of new tenants, with the rights that the operator gives itself in their namespaces: nothing of it is a warning.

use anyhow::{Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{
    Operator, as_account, chart, chart_map, deployed, deployment, install_charts, program, register,
    unless_ended,
};

use super::bed;

const TENANTS: [&str; 3] = ["north", "east", "south"];
const NOTE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Values.say | quote }}}\n";

/// A tenant as a folder in Git has it: what needs something else comes before it.
async fn begin(bed: &Bed, tenant: &str) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let space = format!(
        "{{apiVersion: v1, kind: Namespace, metadata: {{name: {tenant}, labels: {{emco.io/project: {tenant}}}}}}}"
    );
    kubectl.apply(&space).await?;
    let note = chart("note", "1.0.0", &[("values.yaml", "say: one\n"), ("templates/note.yaml", NOTE)])?;
    let spec = "placement: {allOf: [{provider: acme, selector: {}}]}\ncompositeProfileRef: {name: shop}";
    let wanted = deployment(tenant, "shop", std::slice::from_ref(&note), spec);
    let (app, group) = wanted.split_once("\n---\n").unwrap_or_default();
    let rest = format!(
        "
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {{name: shop, namespace: {tenant}}}
spec: {{apps: [{{app: note, valuesFrom: [{{kind: Secret, name: words, key: values}}]}}]}}
---
apiVersion: v1
kind: Secret
metadata: {{name: words, namespace: {tenant}}}
stringData: {{values: \"say: two\"}}
---
apiVersion: emco.io/v1alpha1
kind: Project
metadata: {{name: {tenant}}}
spec: {{logicalCloud: {{level: Admin}}}}
"
    );
    chart_map(bed, tenant, "charts", std::slice::from_ref(&note)).await?;
    kubectl.apply(&[group, app, &rest].join("\n---\n")).await?;
    deployed(bed, tenant, "shop", 1).await.map(drop)
}

#[tokio::test]
async fn the_start_of_a_new_tenant_logs_no_warning() {
    let bed = Bed::start(bed()).await.unwrap();
    bed.explain(Box::pin(async {
        let told = install_charts(&bed).await?;
        let operator = Operator::start_as(&bed, &program()?, as_account(&bed).await?, told).await?;
        let steps = async {
            register(&bed, "acme", &["a"]).await?;
            for tenant in TENANTS {
                begin(&bed, tenant).await?;
            }
            Ok(())
        };
        unless_ended(operator.process(), steps).await?;
        let log = std::fs::read_to_string(operator.process().log())?;
        let warnings: Vec<&str> = log.lines().filter(|line| line.contains("WARN")).collect();
        ensure!(warnings.is_empty(), "{warnings:#?}");
        for tenant in TENANTS {
            let ready = format!("project=\"{tenant}\" deployment=\"shop\"");
            ensure!(log.contains(&ready), "nothing is logged of {tenant}: {log}");
        }
        let ours = "type=Warning,reportingComponent=emco-operator";
        let warned = ["get", "events", "-A", "--field-selector", ours, "-o", "name"];
        let warned = bed.hub().kubectl().run(&warned).await?;
        ensure!(warned.trim().is_empty(), "{warned}");
        Ok(())
    }))
    .await;
}
