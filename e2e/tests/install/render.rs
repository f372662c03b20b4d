//! In: the charts. Out: Helm and our own engine make the same of them, with their defaults and with everything switched on.

use anyhow::{Context as _, Result, bail, ensure};
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

pub fn chart_of(name: &str) -> String {
    root().join("charts").join(name).display().to_string()
}

/// Values that switch on whatever a default leaves out.
pub const EVERYTHING: &str = r#"
replicas: 3
image: {repository: registry.example.com/emco, digest: "sha256:0000000000000000000000000000000000000000000000000000000000000000"}
imagePullSecrets: [{name: pull}]
operator: {logFormat: text, log: debug, edgeInFlight: 5, maxConnects: 9, unreferencedSeconds: 60, allowEdgeAddress: [10.0.0.0/8, 127.0.0.1], hubHost: [api.hub.example.com, 203.0.113.7], proxySecretRef: {name: proxy, key: url}, noProxy: [.example.com, 203.0.113.0/24, "*"], caBundle: {name: authorities, key: all.pem}, extraArgs: [--max-connects=32]}
commonLabels: {example.com/team: edge}
extraEnv: [{name: TZ, value: UTC}]
extraVolumes: [{name: more, emptyDir: {}}]
extraVolumeMounts: [{name: more, mountPath: /more}]
serviceAccount: {annotations: {example.com/role: emco}}
resources: {limits: {memory: 3Gi}}
cache: {sizeLimit: 4Gi}
podAnnotations: {example.com/a: b}
podLabels: {example.com/c: d}
nodeSelector: {kubernetes.io/os: linux}
tolerations: [{operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app.kubernetes.io/name: emco-operator}}}]
priorityClassName: system-cluster-critical
networkPolicy: {metricsFrom: [{ipBlock: {cidr: 10.0.0.0/8}}]}
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
        let chart = chart_of(name);
        let mut args =
            vec!["template", name, &chart, "--namespace", "emco-system", "--kube-version", "1.36.3"];
        args.extend(more);
        let theirs = call(bed, bed.programs().path(Program::Helm)?, &args).await?;
        let ours = call(bed, &own, &args).await?;
        assert_eq!(documents(&ours)?, documents(&theirs)?, "{name} {more:?}");
        let rendered = documents(&ours)?;
        ensure!(!rendered.is_empty(), "{name} renders nothing");
        if !more.is_empty() {
            prometheus_finds_the_service(&rendered);
        } else if name == "emco" {
            only_prometheus_is_let_in(&rendered);
        }
    }
    Ok(())
}

/// The one object of a kind.
pub fn only<'a>(rendered: &'a [Value], kind: &str) -> &'a Value {
    let mut found = rendered.iter().filter(|object| object["kind"] == kind);
    let first = found.next().unwrap_or_else(|| panic!("there is no {kind}"));
    assert!(found.next().is_none(), "there is more than one {kind}");
    first
}

/// The `ServiceMonitor` selects the Service by labels that it has, in its own namespace, and a port by a name that it has; the
/// Service leads to a port of the Pods.
fn prometheus_finds_the_service(rendered: &[Value]) {
    let [monitor, service, deployment] =
        ["ServiceMonitor", "Service", "Deployment"].map(|kind| only(rendered, kind));
    let includes = |all: &Value, some: &Value| {
        let some = some.as_object().unwrap();
        assert!(!some.is_empty());
        some.iter().all(|(key, value)| &all[key] == value)
    };
    assert!(includes(&service["metadata"]["labels"], &monitor["spec"]["selector"]["matchLabels"]));
    assert_eq!(monitor["metadata"]["namespace"], service["metadata"]["namespace"]);
    assert_eq!(monitor["spec"]["namespaceSelector"], Value::Null, "its own namespace");
    let port = &service["spec"]["ports"][0];
    assert_eq!(monitor["spec"]["endpoints"][0]["port"], port["name"]);
    let pod = &deployment["spec"]["template"];
    assert!(includes(&pod["metadata"]["labels"], &service["spec"]["selector"]));
    let ports = pod["spec"]["containers"][0]["ports"].as_array().unwrap();
    assert!(ports.iter().any(|open| open["name"] == port["targetPort"]), "{ports:?}");
}

/// Scrapers of named places reach the port of metrics and nothing else; probes have another port, which is open to the node alone.
fn only_prometheus_is_let_in(rendered: &[Value]) {
    let [policy, deployment] = ["NetworkPolicy", "Deployment"].map(|kind| only(rendered, kind));
    let ingress = policy["spec"]["ingress"].as_array().unwrap();
    let [rule] = &ingress[..] else { panic!("{ingress:?}") };
    assert_eq!(rule["ports"], serde_json::json!([{"port": "http"}]));
    let from = rule["from"].as_array().unwrap();
    assert!(!from.is_empty() && from.iter().all(|peer| peer.get("ipBlock").is_none()), "{from:?}");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    for probe in ["livenessProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["port"], "probes");
    }
}

/// Helm and our own engine refuse values that the schema does not admit, and name the value.
pub async fn wrong_values_are_refused_with_a_sentence(bed: &Bed) -> Result<()> {
    let (own, chart) = (program()?.with_file_name("emco-helm"), chart_of("emco"));
    for (set, named) in [
        ("replicas=0", "replicas"),
        ("image.digest=sha256:12", "digest"),
        ("operator.logFormat=xml", "logFormat"),
        ("operator.allowEdgeAddress={somewhere}", "allowEdgeAddress"),
        ("operator.hubHost={https://hub}", "hubHost"),
        ("operator.proxy=http://user:password@proxy", "proxy"),
        ("operator.noProxy={https://example.com}", "noProxy"),
        ("policies.enabled=perhaps", "enabled"),
        ("replica=3", "replica"),
    ] {
        for renderer in [bed.programs().path(Program::Helm)?, &own] {
            let args = ["template", "emco", &chart, "--namespace", "emco-system", "--set", set];
            let Err(refused) = call(bed, renderer, &args).await else {
                bail!("{} takes {set}", renderer.display());
            };
            let refused = refused.to_string();
            let said = refused.split_once("failed: ").map_or(refused.as_str(), |(_, said)| said);
            ensure!(said.contains(named) && said.contains("schema"), "{}: {set}: {said}", renderer.display());
        }
    }
    Ok(())
}
