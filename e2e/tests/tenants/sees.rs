//! What members of a project see of their own deployments by `kubectl emco`, who may read neither packs nor clusters, and what they do not
//! see: another project's, another namespace's, the value of a Secret.

use std::path::PathBuf;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::DeploymentView;
use emco_e2e::bed::Bed;
use emco_e2e::kubectl::Kubectl;
use emco_e2e::operator::{chart, chart_map, deployed, deployment, program, wait};
use serde_json::Value;
use tokio::process::Command;

use super::world::{ON_A, PASSWORD, Tenant, binding, get, refused, user};

const NAME: &str = "seers";
const OWN: &str = "seers-own-password-5b0e";
const MEMBERS: &str = "exec: Editors, members: [{role: Viewer, subjects: [{kind: User, name: seers-viewer}]}, \
                       {role: Editor, subjects: [{kind: User, name: seers-editor}]}]";
const TILL: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {say: one}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {password: seers-own-password-5b0e}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
";

/// What a command said.
#[derive(Debug)]
struct Said {
    code: Option<i32>,
    text: String,
}

impl Said {
    fn is(&self, code: i32, words: &[&str]) -> Result<()> {
        ensure!(self.code == Some(code), "{code} was expected: {self:?}");
        for word in words {
            ensure!(self.text.contains(word), "{word:?} is missing: {}", self.text);
        }
        for value in [OWN, PASSWORD] {
            ensure!(!self.text.contains(value), "a Secret's value is shown: {}", self.text);
            ensure!(!self.text.contains(&STANDARD.encode(value)), "it is shown encoded: {}", self.text);
        }
        Ok(())
    }
}

async fn emco(bed: &Bed, who: &Kubectl, args: &[&str]) -> Result<Said> {
    let file: PathBuf = program()?.with_file_name("kubectl-emco");
    let mut command = Command::new(file);
    command.args(args).env("KUBECONFIG", who.kubeconfig()).env("HOME", bed.dir()).kill_on_drop(true);
    let output = bed.hear(&mut command).await.context("kubectl-emco does not start")?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let text = format!("{}{}", text(&output.stdout), text(&output.stderr));
    Ok(Said { code: output.status.code(), text })
}

/// The deployment, with its Pod on a node whose kubelet answers, and with objects that others changed.
async fn stage(tenant: &Tenant) -> Result<()> {
    let bed = tenant.bed;
    tenant.ready("default").await?;
    let till = chart("till", "1.0.0", &[("templates/till.yaml", TILL)])?;
    chart_map(bed, NAME, "charts", std::slice::from_ref(&till)).await?;
    let spec = format!("{ON_A}\nsync: {{drift: Report}}");
    tenant.apply(&deployment(NAME, "till", &[till], &spec)).await?;
    let edge = bed.edge("a");
    let one = ["--for=jsonpath={.status.replicas}=1", "deploy/web", "-n", NAME, "--timeout=60s"];
    edge.kubectl().run(&["wait", "--for=create", "deploy/web", "-n", NAME, "--timeout=60s"]).await?;
    edge.kubectl().run(&[&["wait"][..], &one].concat()).await?;
    edge.add_kubelet("ghost", &["first", "second", "third"]).await?;
    // Somebody else's, with the labels of the tenant's.
    let stranger = "{apiVersion: v1, kind: Pod, metadata: {name: stranger, labels: {app: web}}, \
                    spec: {containers: [{name: web, image: example.com/other}]}}";
    edge.kubectl().apply_to(NAME, stranger).await?;
    let names = ["get", "pods", "-n", NAME, "-l", "app=web", "-o", "jsonpath={.items[*].metadata.name}"];
    for pod in edge.kubectl().run(&names).await?.split_whitespace() {
        let binding = serde_json::json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
            "target": {"apiVersion": "v1", "kind": "Node", "name": "ghost"},
        });
        let path = format!("/api/v1/namespaces/{NAME}/pods/{pod}/binding");
        edge.kubectl().run_with(&["create", "--raw", &path, "-f", "-"], &binding.to_string()).await?;
        let ready = ["wait", "--for=condition=Ready", &format!("pod/{pod}"), "-n", NAME, "--timeout=60s"];
        edge.kubectl().run(&ready).await?;
    }
    deployed(bed, NAME, "till", 1).await?;
    let explained = ["wait", "--for=create", "cm/dig-till-1-explain", "-n", NAME, "--timeout=60s"];
    bed.hub().kubectl().run(&explained).await?;
    let note = r#"{"data": {"say": "two"}}"#;
    let key = format!(r#"{{"data": {{"password": "{}"}}}}"#, STANDARD.encode("guess"));
    for (object, patch) in [("cm/note", note), ("secret/key", key.as_str())] {
        edge.kubectl().run(&["patch", object, "-n", NAME, "--type=merge", "-p", patch]).await?;
    }
    Ok(())
}

/// A viewer reads everything of the deployment but values of Secrets.
async fn reads(bed: &Bed, viewer: &Kubectl) -> Result<()> {
    emco(bed, viewer, &["get", "seers/till", "--live"])
        .await?
        .is(0, &["apps/Deployment/seers/web", "Secret/seers/key", "Ready"])?;
    let said = emco(bed, viewer, &["get", "seers/till", "--kind", "ConfigMap", "-o", "json"]).await?;
    said.is(0, &["\"name\": \"note\"", "\"state\": \"Ready\""])?;
    ensure!(!said.text.contains("Deployment.apps") && !said.text.contains("\"web\""), "{}", said.text);
    emco(bed, viewer, &["get", "seers/till", "--kind", "Job"]).await?.is(1, &["no object of kind Job"])?;
    emco(bed, viewer, &["manifests", "seers/till"])
        .await?
        .is(0, &["# app till, revision 1, on acme/a", "(withheld)", "say: one"])?;
    emco(bed, viewer, &["manifests", "seers/till", "--show-secrets"])
        .await?
        .is(1, &["--show-secrets is for administrators of the hub"])?;
    emco(bed, viewer, &["diff", "seers/till"]).await?.is(
        3,
        &[
            "ConfigMap/seers/note (app till) differs",
            "data.say: \"two\" -> \"one\"",
            "Secret/seers/key (app till) differs",
            "data.password: \"(hidden)\" -> \"(hidden)\"",
        ],
    )?;
    emco(bed, viewer, &["explain", "seers/till"]).await?.is(0, &["till ", "acme/a ", "Chosen ", "allOf "])?;
    emco(bed, viewer, &["events", "seers/till"]).await?.is(0, &["ScalingReplicaSet", "Deployment/web"])?;
    let said = emco(bed, viewer, &["logs", "seers/till", "web", "--tail", "2"]).await?;
    said.is(0, &["[pod/web-", "/web] second\n", "/web] third\n"])?;
    ensure!(!said.text.contains("stranger") && !said.text.contains("first"), "{}", said.text);
    emco(bed, viewer, &["logs", "seers/till", "--follow"]).await?.is(1, &["leave out --follow"])?;
    emco(bed, viewer, &["clusters", "-n", NAME]).await?.is(0, &["acme", "Standard", "Reachable", "v1.36.3"])
}

/// An editor runs commands, and sees their output.
async fn runs(bed: &Bed, viewer: &Kubectl, editor: &Kubectl) -> Result<()> {
    let exec = |words: &[&'static str]| [&["exec", "seers/till", "web", "--"][..], words].concat();
    // The bed's kubelet says no other exit codes as such.
    let script = "echo in; id -un; echo beside >&2";
    emco(bed, editor, &exec(&["sh", "-c", script])).await?.is(0, &["in\nnobody\n", "beside\n"])?;
    let said = emco(bed, viewer, &exec(&["touch", "/tmp/seers-viewer-was-here"])).await?;
    said.is(1, &["you may not run commands in containers of namespace seers", "Editor"])?;
    let typed = ["exec", "-i", "seers/till", "web", "--", "cat"];
    emco(bed, editor, &typed).await?.is(1, &["leave out -i and -t"])
}

fn question(name: &str, namespace: &str, deployment: &str, question: &str, released: bool) -> String {
    format!(
        "{{apiVersion: emco.io/v1alpha1, kind: DeploymentView, metadata: {{name: {name}, namespace: {namespace}}}, spec: \
         {{deploymentIntentGroupRef: {{name: {deployment}}}, question: {{{question}}}, released: {released}}}}}"
    )
}

/// The state that a question comes to, with its message.
async fn state_of(bed: &Bed, name: &str) -> Result<(String, String)> {
    wait(bed, NAME, name, |view: &DeploymentView| {
        let status = view.status.clone().unwrap_or_default();
        let state = status.state.ok_or("nobody looked at it yet")?;
        Ok((format!("{state:?}"), status.message.unwrap_or_default()))
    })
    .await
}

/// Questions that lead elsewhere, asked by hand.
async fn leads_nowhere(bed: &Bed, viewer: &Kubectl) -> Result<()> {
    let create = ["create", "-f", "-"];
    refused(viewer, &create, &question("v", "victim", "till", "what: Manifests", false), "forbidden").await?;
    for (name, deployment, asked, words) in [
        ("other", "victims-till", "what: Manifests", "there is no deployment intent group victims-till"),
        ("above", "till", "what: Logs, workload: ../../victim/pods/till", "there is no workload"),
        ("strong", "till", "what: Events, clusters: [vault/strong]", "has nothing on cluster vault/strong"),
        ("several", "till", "what: Logs, clusters: [acme/a, vault/strong]", "logs and commands are of one"),
        ("pod", "till", "what: Logs, workload: Pod/stranger", "there is no workload Pod/stranger"),
        ("past", "till", "what: Differences, revision: 9", "revision 9 of seers/till is not stored"),
    ] {
        viewer.run_with(&create, &question(name, NAME, deployment, asked, false)).await?;
        let (state, message) = state_of(bed, name).await?;
        ensure!(state == "Refused" && message.contains(words), "{name}: {state}: {message}");
    }
    refused(viewer, &["get", "deploymentviews.emco.io", "-n", NAME], "", "forbidden").await?;
    // Who may only create releases nothing, at once or later.
    let command = "what: Exec, workload: web, command: [touch, /tmp/seers-viewer-was-here]";
    viewer.run_with(&create, &question("runs", NAME, "till", command, true)).await?;
    let (state, _) = state_of(bed, "runs").await?;
    ensure!(state == "Waiting", "{state}");
    let release = r#"{"spec": {"released": true}}"#;
    let patch = ["patch", "deploymentviews.emco.io", "runs", "-n", NAME, "--type=merge", "-p", release];
    refused(viewer, &patch, "", "forbidden").await?;
    ensure!(!std::path::Path::new("/tmp/seers-viewer-was-here").exists(), "a viewer's command ran");
    Ok(())
}

#[tokio::test]
async fn members_see_their_own_deployments_and_nothing_beyond_them() {
    let tenant = Tenant::new(NAME, &["admin", "emco-admin"], MEMBERS).await.unwrap();
    let bed = tenant.bed;
    bed.explain(Box::pin(async {
        stage(&tenant).await?;
        let (viewer, editor) = (user(bed, "seers-viewer").await?, user(bed, "seers-editor").await?);
        for (who, verb) in [(&viewer, "create"), (&editor, "patch")] {
            let may = ["auth", "can-i", verb, "deploymentviews.emco.io", "-n", NAME];
            who.until(&may, "", true).await?;
        }
        reads(bed, &viewer).await?;
        runs(bed, &viewer, &editor).await?;
        leads_nowhere(bed, &viewer).await?;
        // An administrator sees what a member sees.
        let admin = bed.hub().kubectl();
        let get = |more: &[&'static str]| [&["get", "seers/till"][..], more].concat();
        for (more, code, words) in [
            (&["--as", "seers-viewer"][..], 0, "ConfigMap/seers/note"),
            (&["--as", "nobody-at-all"], 1, "you may not read"),
            (&["--as", "nobody-at-all", "--as-group", "system:masters"], 0, "ConfigMap/seers/note"),
            (&["--as-group", "system:masters"], 2, "--as"),
        ] {
            emco(bed, admin, &get(more)).await?.is(code, &[words])?;
        }
        // Nothing is left of questions that were answered.
        let views = ["get", "deploymentviews.emco.io", "-n", NAME, "-o", "json"];
        let left: Value = serde_json::from_str(&admin.run(&views).await?)?;
        let items = left["items"].as_array().context("no list")?;
        let answered = items.iter().filter(|view| view["status"]["state"] == "Answered").count();
        ensure!(answered == 0, "{left:#}");
        Ok(())
    }))
    .await;
}

#[tokio::test]
async fn a_viewer_at_level_admin_sees_the_deployments_objects_alone() {
    let (bed, _) = get().await.unwrap();
    bed.explain(async {
        bed.hub().kubectl().apply(&binding("victim", "victims-viewer", "emco-viewer")).await?;
        let viewer = user(bed, "victims-viewer").await?;
        let may = ["auth", "can-i", "create", "deploymentviews.emco.io", "-n", "victim"];
        viewer.until(&may, "", true).await?;
        emco(bed, &viewer, &["get", "victim/till", "--live"])
            .await?
            .is(0, &["Secret/victim/till", "Ready"])?;
        emco(bed, &viewer, &["manifests", "victim/till"]).await?.is(0, &["(withheld)"])?;
        emco(bed, &viewer, &["diff", "victim/till"]).await?.is(0, &["revision 1: no difference in 1"])?;
        emco(bed, &viewer, &["events", "victim/till"]).await?.is(0, &["no Events of victim/till"])?;
        emco(bed, &viewer, &["logs", "victim/till"]).await?.is(1, &["it has no Deployment"])?;
        emco(bed, &viewer, &["exec", "victim/till", "--", "date"])
            .await?
            .is(1, &["you may not run commands in containers of namespace victim"])
    })
    .await;
}
