//! In: the charts of this repository on a real hub. Out: Helm and our own engine make the same of them, and the operator does
//! its whole work with the rights that they give to its service account: none is missing, none is there for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use emco_crds::{ClusterProvider, DeploymentIntentGroup, Project};
use emco_e2e::audit::AuditEvent;
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    Operator, SOON, chart, chart_map, deployed, deployment, ours, program, project, register, root, wait,
};
use emco_e2e::programs::Program;
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use serde::Deserialize as _;
use serde_json::Value;
use tokio::process::Command;

const OPERATOR: &str = "system:serviceaccount:emco-system:emco-operator";
const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {}}]}";

fn bed() -> BedSpec {
    BedSpec::default()
        .with(PlaneSpec::new("hub", Parts::Controllers).audit(Audit::All))
        .with(PlaneSpec::edge("a"))
        .with_helm()
}

/// Runs Helm, or the engine's own program in its place, against the hub.
async fn call(bed: &Bed, program: PathBuf, args: &[&str]) -> Result<String> {
    let output = Command::new(&program)
        .args(args)
        .env("KUBECONFIG", bed.hub().kubectl().kubeconfig())
        .env("HOME", bed.dir().join("helm"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("cannot start {}", program.display()))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{} {} failed: {}", program.display(), args.join(" "), said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn documents(text: &str) -> Result<Vec<Value>> {
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

async fn helm_and_our_engine_agree(bed: &Bed) -> Result<()> {
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
        let theirs = call(bed, bed.programs().path(Program::Helm)?.to_owned(), &args).await?;
        let ours = call(bed, own.clone(), &args).await?;
        assert_eq!(documents(&ours)?, documents(&theirs)?, "{name} {more:?}");
        ensure!(!documents(&ours)?.is_empty(), "{name} renders nothing");
    }
    Ok(())
}

async fn install(bed: &Bed) -> Result<String> {
    let mut told = String::new();
    for name in ["emco-crds", "emco"] {
        let chart = root().join("charts").join(name).display().to_string();
        let args = ["install", name, &chart, "--namespace", "emco-system", "--create-namespace"];
        told += &call(bed, bed.programs().path(Program::Helm)?.to_owned(), &args).await?;
    }
    let established = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
    bed.hub().kubectl().run(&established).await?;
    Ok(told)
}

/// A kubeconfig of the service account that the chart made.
async fn account(bed: &Bed) -> Result<PathBuf> {
    let args = ["create", "token", "emco-operator", "--namespace", "emco-system", "--duration", "2h"];
    let token = bed.hub().kubectl().run(&args).await?;
    let file = bed.dir().join("operator.kubeconfig");
    tokio::fs::write(&file, bed.hub().kubeconfig_with_token(token.trim())).await?;
    Ok(file)
}

/// Everything the operator does: from clusters to deployments and back, with a Secret among the manifests.
async fn life(bed: &Bed) -> Result<()> {
    register(bed, "acme", &["a"]).await?;
    project(bed, "shop").await?;
    let template = "
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-key}
stringData: {key: {{ .Values.key | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note}
data: {key: {{ .Values.key | quote }}}
";
    let note = chart("note", "1.0.0", &[("values.yaml", "key: one\n"), ("templates/note.yaml", template)])?;
    chart_map(bed, "shop", "charts", std::slice::from_ref(&note)).await?;
    let kubectl = bed.hub().kubectl();
    let values =
        |value: &str| format!("{EVERYWHERE}\noverrideValues: [{{app: note, values: {{key: {value}}}}}]");
    let profile = "
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: till, namespace: shop}
spec: {apps: [{app: note, values: {key: profile}}]}
";
    kubectl.apply(profile).await?;
    for (revision, value) in [(1, "one"), (2, "two"), (3, "three")] {
        let spec = format!("{}\ncompositeProfileRef: {{name: till}}\nrevisionHistoryLimit: 1", values(value));
        kubectl.apply(&deployment("shop", "till", std::slice::from_ref(&note), &spec)).await?;
        deployed(bed, "shop", "till", revision).await?;
    }
    let refused = kubectl.output(&["apply", "-f", "-"], APPROVAL).await?;
    assert!(refused.stderr.contains("spec.approvedBy must be your own user name"), "{}", refused.stderr);
    kubectl.apply(&APPROVAL.replace("somebody-else", "tester").replace("of-another", "of-mine")).await?;
    kubectl.run(&["delete", "dig", "till", "-n", "shop", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, "till", SOON).await?;
    assert_eq!(ours(bed, "a", "configmaps,secrets", None).await?, Vec::<String>::new());
    Ok(())
}

const APPROVAL: &str = "
apiVersion: emco.io/v1alpha1
kind: DeploymentApproval
metadata: {name: of-another, namespace: shop}
spec:
  deploymentIntentGroupRef: {name: till}
  digest: sha256:0000000000000000000000000000000000000000000000000000000000000000
  approvedBy: somebody-else
";

/// Whoever is no operator may not do what the policies keep for it.
async fn policies(bed: &Bed) -> Result<()> {
    let editor = bed.dir().join("editor.kubeconfig");
    tokio::fs::write(&editor, bed.hub().kubeconfig_as("editor", None)?).await?;
    let grant = |role: &str, name: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {{name: {name}}}\n\
             roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {role}}}\n\
             subjects: [{{kind: User, apiGroup: rbac.authorization.k8s.io, name: editor}}]\n---\n"
        )
    };
    let broad = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: broad}
rules:
- {apiGroups: [\"\"], resources: [namespaces], verbs: [get, create, update, patch]}
- {apiGroups: [emco.io], resources: [syncshards, appcontexts, clusters], verbs: [get, list, create, update, patch, delete]}
";
    bed.hub()
        .kubectl()
        .apply(&format!("{}{}{broad}", grant("emco-editor", "editor"), grant("broad", "broad")))
        .await?;
    let editor = bed.hub().kubectl().with_kubeconfig(&editor);
    let shard = bed.hub().kubectl().run(&["get", "syncshards", "-n", "shop", "-o", "name"]).await?;
    let shard = shard.lines().next().context("there is no shard")?.to_owned();
    for (args, input, said) in [
        (vec!["delete", &shard, "-n", "shop"], String::new(), "only the operator writes"),
        (
            vec!["create", "-f", "-"],
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: mine, labels: {emco.io/project: shop}}"
                .to_owned(),
            "the verb own",
        ),
        (
            vec!["label", "namespace", "shop", "emco.io/project=other", "--overwrite"],
            String::new(),
            "the verb own",
        ),
        (
            vec!["label", "clusters.emco.io", "a", "-n", "acme", "emco.io/x=y"],
            String::new(),
            "kept for the operator",
        ),
    ] {
        let answer = editor.output(&args, &input).await?;
        assert!(
            !answer.is_ok() && answer.stderr.contains(said),
            "{args:?}: {}{}",
            answer.stdout,
            answer.stderr
        );
    }
    // What the policies do not speak of stays possible.
    editor.run(&["label", "namespace", "shop", "example.com/team=shop"]).await?;
    editor.run(&["label", "clusters.emco.io", "a", "-n", "acme", "zone=one"]).await.map(drop)
}

async fn removal(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    kubectl
        .run(&["delete", "compositeapps.emco.io,compositeprofiles.emco.io", "--all", "-n", "shop"])
        .await?;
    kubectl.run(&["delete", "projects.emco.io", "shop", "--wait=false"]).await?;
    wait_until_gone(Api::<Project>::all(bed.hub().client().await?), "shop", SOON).await?;
    kubectl.run(&["delete", "clusters.emco.io", "a", "-n", "acme"]).await?;
    kubectl.run(&["delete", "clusterproviders.emco.io", "acme", "--wait=false"]).await?;
    wait_until_gone(Api::<ClusterProvider>::all(bed.hub().client().await?), "acme", SOON).await?;
    let bindings = kubectl.run(&["get", "rolebindings", "-A", "-o", "name"]).await?;
    assert_eq!(
        bindings.matches("/emco-operator\n").count(),
        1,
        "only its own namespace's is left: {bindings}"
    );
    Ok(())
}

/// Nothing is left of the manifests of what is gone.
async fn packs_are_collected(bed: &Bed) -> Result<()> {
    let deadline = Instant::now() + SOON;
    let args = ["get", "configmaps,secrets", "-n", "emco-system", "-l", "emco.io/owner", "-o", "name"];
    loop {
        let left = bed.hub().kubectl().run(&args).await?;
        if left.trim().is_empty() {
            return Ok(());
        }
        ensure!(Instant::now() < deadline, "packs that nobody names are still there: {left}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// One right: group, resource with its subresource, verb.
type Right = (String, String, String);

/// The rights that the chart gives to the operator; those that are no request are left out.
fn given(rendered: &str) -> Result<BTreeSet<Right>> {
    let mut rights = BTreeSet::new();
    for role in documents(rendered)? {
        let name = role.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        let kind = role["kind"].as_str().unwrap_or_default();
        if !matches!(kind, "ClusterRole" | "Role")
            || !["emco-operator", "emco-namespace-access"].contains(&name)
        {
            continue;
        }
        let list = |rule: &Value, key: &str| -> Vec<String> {
            rule[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        for rule in role["rules"].as_array().into_iter().flatten() {
            for group in list(rule, "apiGroups") {
                for resource in list(rule, "resources") {
                    for verb in list(rule, "verbs") {
                        ensure!(
                            ![&group, &resource, &verb].contains(&&"*".to_owned()),
                            "{name} has a wildcard"
                        );
                        if verb != "own" && verb != "bind" {
                            rights.insert((group.clone(), resource.clone(), verb));
                        }
                    }
                }
            }
        }
    }
    Ok(rights)
}

/// The rights that the book explains.
fn explained() -> Result<BTreeSet<Right>> {
    let page = std::fs::read_to_string(root().join("docs/rights.md"))?;
    let mut rights = BTreeSet::new();
    for row in page.lines().filter(|line| line.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [group, resources, verbs, reason] = cells[..] else { continue };
        if group == "API group" || group.starts_with("---") {
            continue;
        }
        ensure!(!reason.is_empty(), "no reason is given for {resources}");
        let words = |cell: &str| -> Vec<String> {
            cell.split(',').map(|word| word.trim().trim_matches('`').to_owned()).collect()
        };
        let group = if group == "core" { String::new() } else { group.trim_matches('`').to_owned() };
        for resource in words(resources) {
            for verb in words(verbs) {
                rights.insert((group.clone(), resource.clone(), verb));
            }
        }
    }
    Ok(rights)
}

fn asked(events: &[AuditEvent]) -> BTreeMap<Right, u16> {
    let mine = events.iter().filter(|event| event.user == OPERATOR && !event.resource.is_empty());
    mine.map(|event| {
        let resource = match event.subresource.as_str() {
            "" => event.resource.clone(),
            sub => format!("{}/{sub}", event.resource),
        };
        ((event.group.clone(), resource, event.verb.clone()), event.code)
    })
    .collect()
}

/// A shard is read only after somebody else wrote it at the same moment, which is no fact of every run.
fn is_after_conflicts((group, resource, verb): &Right) -> bool {
    (group.as_str(), resource.as_str(), verb.as_str()) == ("emco.io", "syncshards", "get")
}

/// The audit log with the watches of an operator that has ended: they are told when they end.
async fn everything_asked(bed: &Bed) -> Result<Vec<AuditEvent>> {
    let deadline = Instant::now() + SOON;
    loop {
        let events = bed.hub().audit()?;
        let told = |resource: &str| {
            events.iter().any(|e| e.user == OPERATOR && e.verb == "watch" && e.resource == resource)
        };
        if ["syncshards", "projects", "namespaces"].iter().all(|resource| told(resource)) {
            return Ok(events);
        }
        ensure!(Instant::now() < deadline, "the ends of the operator's watches are not in the audit log");
        // The log is a file; nothing tells of its growth.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test]
async fn the_operator_works_with_exactly_the_rights_of_its_chart() {
    let bed = Bed::start(bed()).await.unwrap();
    bed.explain(async {
        helm_and_our_engine_agree(&bed).await?;
        let told = install(&bed).await?;
        // Packs are collected soon, so that it is seen with which rights.
        let soon = [("EMCO_UNREFERENCED_SECONDS", "2")];
        let operator = Operator::start_with(&bed, &program()?, account(&bed).await?, told, &soon).await?;
        life(&bed).await?;
        policies(&bed).await?;
        // A project that makes its namespace takes it along.
        let made = "{apiVersion: emco.io/v1alpha1, kind: Project, metadata: {name: made}, spec: {}}";
        bed.hub().kubectl().apply(made).await?;
        let ready = ["wait", "--for=condition=Ready", "--timeout=60s", "projects.emco.io", "made"];
        bed.hub().kubectl().run(&ready).await?;
        bed.hub().kubectl().run(&["delete", "projects.emco.io", "made", "--wait=false"]).await?;
        wait_until_gone(Api::<Namespace>::all(bed.hub().client().await?), "made", SOON).await?;
        // One whose namespace somebody deletes first lets go of it, too.
        project(&bed, "hasty").await?;
        wait(&bed, "hasty", "default", |cloud: &emco_crds::LogicalCloud| {
            emco_e2e::operator::is(cloud.status.as_ref(), emco_crds::conditions::types::READY, "True")
        })
        .await?;
        bed.hub().kubectl().run(&["delete", "namespace", "hasty", "--wait=false"]).await?;
        bed.hub().kubectl().run(&["delete", "projects.emco.io", "hasty", "--wait=false"]).await?;
        wait_until_gone(Api::<Project>::all(bed.hub().client().await?), "hasty", SOON).await?;
        wait_until_gone(Api::<Namespace>::all(bed.hub().client().await?), "hasty", SOON).await?;
        removal(&bed).await?;
        packs_are_collected(&bed).await?;
        operator.kill().await?;
        let events = everything_asked(&bed).await?;
        let refused: BTreeSet<String> = events
            .iter()
            .filter(|event| event.user == OPERATOR && event.code == 403)
            // Before the operator has bound itself in a namespace that just became its own, a watch may be early.
            .filter(|event| event.is_write() || !["secrets", "configmaps"].contains(&event.resource.as_str()))
            // Nobody may create anything in a namespace that is being deleted.
            .filter(|event| !(event.namespace == "hasty" && event.resource == "events"))
            .map(|event| format!("{} {} {}", event.verb, event.uri, event.code))
            .collect();
        assert_eq!(refused, BTreeSet::new(), "rights that are missing");
        let chart = root().join("charts/emco").display().to_string();
        let args = ["template", "emco", &chart, "--namespace", "emco-system", "--kube-version", "1.36.3"];
        let rendered = call(&bed, bed.programs().path(Program::Helm)?.to_owned(), &args).await?;
        let (given, asked) = (given(&rendered)?, asked(&events));
        assert_eq!(explained()?, given, "docs/rights.md and the chart");
        let unused: Vec<_> =
            given.iter().filter(|right| !asked.contains_key(*right) && !is_after_conflicts(right)).collect();
        assert!(unused.is_empty(), "rights that nothing asked for: {unused:#?}");
        Ok(())
    })
    .await;
}
