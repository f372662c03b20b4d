//! In: the charts. Out: Helm and our own engine make the same of them, with their defaults and with everything switched on.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{call, program, root};
use emco_e2e::programs::Program;
use serde::Deserialize as _;
use serde_json::Value;

pub fn documents(text: &str) -> Result<Vec<Value>> {
    serde_yaml::Deserializer::from_str(text)
        .map(|document| Value::deserialize(document).context("what was rendered is no YAML"))
        .filter(|document| !matches!(document, Ok(Value::Null)))
        .collect()
}

/// Values that switch on whatever a default leaves out.
const EVERYTHING: &str = r#"
replicas: 3
image: {repository: registry.example.com/emco, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
imagePullSecrets: [{name: pull}]
operator: {allowEdgeAddress: [10.0.0.0/8, 127.0.0.1], proxySecretRef: {name: proxy, key: url}}
serviceAccount: {annotations: {example.com/role: emco}}
podAnnotations: {example.com/a: b}
podLabels: {example.com/c: d}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app.kubernetes.io/name: emco-operator}}}]
priorityClassName: system-cluster-critical
serviceMonitor: {enabled: true, labels: {release: prometheus}}
policies: {refuseDeletionInUse: true}
"#;

pub async fn helm_and_our_engine_agree(bed: &Bed) -> Result<()> {
    let values = bed.dir().join("everything.yaml");
    tokio::fs::write(&values, EVERYTHING).await?;
    let values = values.display().to_string();
    let own = program()?.with_file_name("emco-helm");
    ensure!(own.is_file(), "there is no {}: build it with `cargo build -p emco-helm`", own.display());
    for (name, more) in [("emco-crds", &[][..]), ("emco", &[]), ("emco", &["--values", &values])] {
        let chart = root().join("charts").join(name).display().to_string();
        let mut args =
            vec!["template", name, &chart, "--namespace", "emco-system", "--kube-version", "1.36.3"];
        args.extend(more);
        let theirs = call(bed, bed.programs().path(Program::Helm)?, &args).await?;
        let ours = call(bed, &own, &args).await?;
        assert_eq!(documents(&ours)?, documents(&theirs)?, "{name} {more:?}");
        ensure!(!documents(&ours)?.is_empty(), "{name} renders nothing");
    }
    Ok(())
}
