//! A hub with the charts' roles, two edges, an operator, projects, and users with one role each.

use std::path::PathBuf;

use anyhow::{Context as _, Result, anyhow};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_e2e::bed::{Bed, BedSpec, PlaneSpec, SharedBed};
use emco_e2e::kubectl::Kubectl;
use emco_e2e::operator::{
    Operator, as_account, chart, chart_map, deployment, install_charts, program, register, unless_ended, wait,
};
use serde_json::{Value, json};
use tokio::sync::{Mutex, OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Both edges, which have the label `tier: edge`.
pub const EVERYWHERE: &str = "placement: {allOf: [{provider: acme, selector: {matchLabels: {tier: edge}}}]}";
/// The edge that no test stops.
pub const ON_A: &str = "placement: {allOf: [{provider: acme, cluster: a}]}";
/// The only deployment of each project.
pub const TILL: &str = "till";
/// What each member of a project is called; `nobody` is none.
const MEMBERS: [(&str, &str); 3] = [("viewer", "Viewer"), ("editor", "Editor"), ("approver", "Approver")];

static BED: SharedBed = SharedBed::new(|| {
    BedSpec::default()
        .with(PlaneSpec::light("hub", &[]))
        .with(PlaneSpec::light("a", &[]))
        .with(PlaneSpec::light("b", &[]).proxied())
        .with_helm()
});
static OPERATOR: OnceCell<Result<Mutex<Operator>, String>> = OnceCell::const_new();
/// Tests share the operator, but for the one that stops it.
static TURNS: RwLock<()> = RwLock::const_new(());

/// The bed with its operator, made by the first test that wants it.
pub async fn get() -> Result<(&'static Bed, &'static Mutex<Operator>)> {
    let bed = BED.get().await?;
    let start = || async {
        let start = async {
            let told = install_charts(bed).await?;
            let operator = Operator::start_as(bed, &program()?, as_account(bed).await?, told).await?;
            unless_ended(operator.process(), register(bed, "acme", &["a", "b"])).await?;
            Ok::<_, anyhow::Error>(Mutex::new(operator))
        };
        start.await.map_err(|error| format!("{error:#}"))
    };
    let operator = OPERATOR.get_or_init(start).await.as_ref().map_err(|error| anyhow!("{error}"))?;
    Ok((bed, operator))
}

/// While this is held, the operator goes on.
pub async fn beside_others() -> RwLockReadGuard<'static, ()> {
    TURNS.read().await
}

/// While this is held, no other test looks.
pub async fn alone() -> RwLockWriteGuard<'static, ()> {
    TURNS.write().await
}

/// Members of a project but for `without`.
fn members(without: &str) -> Vec<Value> {
    let present = MEMBERS.iter().filter(|(name, _)| *name != without);
    present.map(|(name, role)| json!({"role": role, "subjects": [{"kind": "User", "name": name}]})).collect()
}

/// Makes a project of its own namespace, whose plans wait for an approval where `mode` is Manual, and waits until its members have
/// their rights.
pub async fn project(bed: &Bed, name: &str, mode: &str) -> Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": name, "labels": {"emco.io/project": name}}});
    let project = json!({"apiVersion": "emco.io/v1alpha1", "kind": "Project", "metadata": {"name": name},
        "spec": {"logicalCloud": {"level": "Admin"}, "approval": {"mode": mode, "scope": "Plan"},
            "members": members("")}});
    bed.hub().kubectl().apply(&format!("{namespace}\n---\n{project}\n")).await?;
    may(bed, "approver", "create", "deploymentapprovals.emco.io", name, true).await?;
    may(bed, "viewer", "list", "syncshards.emco.io", name, true).await
}

/// Takes the role of a member away, and waits until the hub heeds it.
pub async fn withdraw(bed: &Bed, project: &str, member: &str) -> Result<()> {
    let patch = json!({"spec": {"members": members(member)}}).to_string();
    bed.hub().kubectl().run(&["patch", "projects.emco.io", project, "--type=merge", "-p", &patch]).await?;
    may(bed, member, "list", "deploymentintentgroups.emco.io", project, false).await
}

/// Waits until `kubectl auth can-i` answers so.
async fn may(bed: &Bed, user: &str, verb: &str, resource: &str, project: &str, wanted: bool) -> Result<()> {
    let asked = ["auth", "can-i", verb, resource, "-n", project];
    kubectl(bed, user)?.until(&asked, "", wanted).await
}

/// What `kubectl auth can-i` answers.
pub async fn can_i(bed: &Bed, user: &str, verb: &str, resource: &str, project: &str) -> Result<bool> {
    let asked = ["auth", "can-i", verb, resource, "-n", project];
    Ok(kubectl(bed, user)?.output(&asked, "").await?.stdout.trim() == "yes")
}

/// The kubeconfig of a user of the hub, who has a certificate and no group.
pub fn kubeconfig(bed: &Bed, user: &str) -> Result<PathBuf> {
    let file = bed.dir().join(format!("{user}.kubeconfig"));
    if !file.is_file() {
        // Tests that run at once write the same file: who reads it has all of the one or of the other.
        let whole = tempfile::NamedTempFile::new_in(bed.dir())?;
        std::fs::write(whole.path(), bed.hub().kubeconfig_as(user, None)?)?;
        whole.persist(&file)?;
    }
    Ok(file)
}

/// kubectl as such a user.
pub fn kubectl(bed: &Bed, user: &str) -> Result<Kubectl> {
    Ok(bed.hub().kubectl().with_kubeconfig(&kubeconfig(bed, user)?))
}

const NOTE: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note}
data: {key: {{ .Values.key | quote }}}
";
const GATE: &str = "
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}-gate}
spec: {selector: {app: gate}, ports: [{port: {{ .Values.port }}}]}
";

/// Deploys two apps as `till`: `note` with a ConfigMap, and `gate` with a Service. `spec` says where, and with which values.
pub async fn deploy(bed: &Bed, project: &str, spec: &str) -> Result<()> {
    let charts = [
        chart("note", "1.0.0", &[("values.yaml", "key: one\n"), ("templates/note.yaml", NOTE)])?,
        chart("gate", "1.0.0", &[("values.yaml", "port: 80\n"), ("templates/gate.yaml", GATE)])?,
    ];
    chart_map(bed, project, "charts", &charts).await?;
    bed.hub().kubectl().apply(&deployment(project, TILL, &charts, spec)).await.map(drop)
}

/// Changes the values of `note`, and answers the digest of the plan of that, once it waits.
pub async fn edit(bed: &Bed, project: &str, key: &str, before: &str) -> Result<String> {
    let values = json!({"spec": {"overrideValues": [{"app": "note", "values": {"key": key}}]}}).to_string();
    let args = ["patch", "dig", TILL, "-n", project, "--type=merge", "-p", &values];
    bed.hub().kubectl().run(&args).await?;
    waits(bed, project, before).await
}

/// The digest of the plan that waits, once it is another one than `before`.
pub async fn waits(bed: &Bed, project: &str, before: &str) -> Result<String> {
    wait(bed, project, TILL, |dig: &DeploymentIntentGroup| {
        let status = dig.status.as_ref().ok_or("it has no status")?;
        if status.observed_generation != dig.metadata.generation {
            return Err("the last change was not looked at yet".to_owned());
        }
        let asks = status.condition(types::APPROVED).is_some_and(|found| found.reason == "AwaitingApproval");
        let digest = status.pending.as_ref().map(|pending| pending.digest.clone());
        digest.filter(|digest| asks && digest != before).ok_or_else(|| format!("{status:?}"))
    })
    .await
}

/// The first digits of a digest, as they are shown.
pub fn short(digest: &str) -> &str {
    digest.trim_start_matches("sha256:").get(..12).unwrap_or_default()
}

/// The approvals of a project, as `DIGITS DECISION COMMENT`.
pub async fn approvals(bed: &Bed, project: &str) -> Result<Vec<String>> {
    let args = ["get", "deploymentapprovals.emco.io", "-n", project, "-o", "json"];
    let list: Value = serde_json::from_str(&bed.hub().kubectl().run(&args).await?)?;
    let items = list["items"].as_array().context("there is no list")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let line = |spec: &Value| {
        let (decision, comment) = (text(&spec["decision"]), text(&spec["comment"]));
        format!("{} {decision} {comment}", short(spec["digest"].as_str().unwrap_or_default()))
    };
    Ok(items.iter().map(|item| line(&item["spec"])).collect())
}
