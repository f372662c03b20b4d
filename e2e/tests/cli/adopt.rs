//! Moving in: what others made on a cluster is listed, taken over in place, and left in the end.

use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::deployment_intent_group::sync::ConflictPolicy;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{SOON, SharedOperator, chart, chart_map, deployed, deployment, project, wait};
use emco_e2e::package::Package;
use emco_e2e::programs::Program;
use emco_e2e::wait::wait_until_gone;
use tokio::process::Command;
use tokio::sync::Mutex;

use super::looks::{EVERYWHERE, tenant};
use super::rig::{run, run_as};

/// On `old`, others have something, and Pods run; `away` can be cut off, and nothing runs there.
pub static TAKEN: SharedOperator = SharedOperator::new(
    || {
        BedSpec::bare_hub()
            .with(PlaneSpec::edge("old"))
            .with(PlaneSpec::new("away", Parts::ApiServer).proxied())
            .with_helm()
    },
    &["old", "away"],
);
/// Tests that cut `away` off take turns.
pub static CUTS: Mutex<()> = Mutex::const_new(());

const RELEASE: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}-note, labels: {app.kubernetes.io/managed-by: {{ .Release.Service }}}}
data:
  say: {{ .Values.say | quote }}
{{- if .Values.more }}
  more: "yes"
{{- end }}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name }}-key}
stringData: {word: {{ .Values.word | quote }}}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers: [{name: web, image: example.com/web, resources: {requests: {cpu: "0.5"}}}]
"#;

/// The page: what is run instead of `helm uninstall`.
const PAGE: &str = include_str!("../../../docs/moving-in.md");

fn release() -> Result<Package> {
    chart("web", "1.0.0", &[("values.yaml", "say: hello\nmore: true\n"), ("templates/web.yaml", RELEASE)])
}

/// Helm on the edge `old`.
async fn helm(bed: &Bed, args: &[&str]) -> Result<String> {
    let output = Command::new(bed.programs().path(Program::Helm)?)
        .args(args)
        .env("KUBECONFIG", bed.edge("old").kubectl().kubeconfig())
        .env("HOME", bed.dir().join("helm"))
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await?;
    ensure!(output.status.success(), "helm {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What kubectl prints of a field on the edge `old`.
async fn field(bed: &Bed, namespace: &str, object: &str, path: &str) -> Result<String> {
    let path = format!("jsonpath={path}");
    let kubectl = bed.edge("old").kubectl();
    kubectl.run(&["get", object, "-n", namespace, "-o", &path]).await.context(object.to_owned())
}

/// What would be another if a Pod had been started anew: the Deployment, its rollout, its template and its Pods.
async fn run_of_web(bed: &Bed) -> Result<[String; 4]> {
    let rollout = ["rollout", "status", "deploy/web", "-n", "moves", "--timeout=60s"];
    bed.edge("old").kubectl().run(&rollout).await?;
    let revision = r"{.metadata.annotations.deployment\.kubernetes\.io/revision}";
    let pods = ["get", "pods", "-n", "moves", "-l", "app=web", "-o", "jsonpath={.items[*].metadata.uid}"];
    let pods = bed.edge("old").kubectl().run(&pods).await?;
    ensure!(!pods.is_empty(), "there is no Pod");
    Ok([
        field(bed, "moves", "deploy/web", "{.metadata.uid}").await?,
        field(bed, "moves", "deploy/web", revision).await?,
        field(bed, "moves", "deploy/web", "{.spec.template}").await?,
        pods,
    ])
}

async fn deploy(bed: &Bed, values: &str) -> Result<()> {
    let spec = format!(
        "release: web\nplacement: {{allOf: [{{provider: acme, cluster: old}}]}}\noverrideValues: [{{app: web, values: {values}}}]"
    );
    bed.hub().kubectl().apply(&deployment("moves", "till", &[release()?], &spec)).await.map(drop)
}

/// Waits until something of the deployment is in the way.
async fn fails(bed: &Bed, namespace: &str) -> Result<()> {
    wait(bed, namespace, "till", |dig: &DeploymentIntentGroup| {
        let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
        let met = failing.iter().any(|one| one.cluster == "acme/old");
        if met { Ok(()) } else { Err(format!("{failing:?}")) }
    })
    .await
}

async fn conflicts(bed: &Bed, namespace: &str) -> Result<ConflictPolicy> {
    let digs = bed.hub().api::<DeploymentIntentGroup>(namespace).await?;
    Ok(digs.get("till").await?.spec.sync.conflicts)
}

/// Lists what the release has, and changes nothing.
async fn is_listed(bed: &Bed) -> Result<()> {
    let version = "{.metadata.resourceVersion}";
    let before = field(bed, "moves", "secret/web-key", version).await?;
    let said = run(bed, &["adopt", "moves/till"]).await?;
    said.is(
        3,
        &[
            "acme/old, revision 1: 4 objects of others",
            "  Secret/moves/web-key (app web) of Helm release moves/web: Force\n    data.word: \"(hidden)\" -> \"(hidden)\"\n    held by others: data.word: conflict with \"helm\"",
            "  apps/Deployment/moves/web (app web) of Helm release moves/web: AdoptIfSame, an apply changes nothing\n",
            "Force takes over 4 objects; 1 of them would change, and no Pod restarts. spec.sync.conflicts is Fail.",
            "\n  kubectl emco adopt moves/till --conflicts Force\n",
            "delete the release's Secrets on the cluster; helm uninstall would delete the objects",
        ],
    );
    ensure!(said.out == shown()?, "the page shows something else:\n{}", said.out);
    for secret in ["theirs", "dGhlaXJz", "ours", "b3Vycw"] {
        // "object of others" is no secret.
        ensure!(!said.out.replace("others", "").contains(secret), "{}", said.out);
    }
    let said = run(bed, &["adopt", "till", "-n", "moves", "--app", "web", "-o", "json"]).await?;
    said.is(3, &[]);
    let json = said.json();
    ensure!(json["conflicts"] == "Fail" && json["needs"] == "Force" && json["change"].is_null(), "{json:#}");
    let objects = json["clusters"][0]["objects"].as_array().context("no objects")?;
    let of = |name: &str| objects.iter().find(|one| one["object"] == name).with_context(|| name.to_owned());
    let key = of("Secret/moves/web-key")?;
    ensure!(
        key["tool"] == "Helm" && key["needs"] == "Force" && key["holder"] == "Helm release moves/web",
        "{key:#}"
    );
    ensure!(key["fields"][0]["is"] == "(hidden)" && key["held"][0]["field"] == "data.word", "{key:#}");
    let web = of("apps/Deployment/moves/web")?;
    ensure!(web["needs"] == "AdoptIfSame" && web["restartsPods"] == false, "{web:#}");
    ensure!(field(bed, "moves", "secret/web-key", version).await? == before, "it was written");
    Ok(())
}

/// What is no way to take them over.
async fn is_refused(bed: &Bed) -> Result<()> {
    run(bed, &["adopt", "moves/till", "--conflicts", "Adopt"]).await?.is(
        1,
        &[
            "Helm release moves/web: Force",
            "moves/till: Adopt leaves 1 object: Secret/moves/web-key on acme/old needs Force; nothing was changed",
        ],
    );
    ensure!(conflicts(bed, "moves").await? == ConflictPolicy::Fail);
    run(bed, &["adopt", "moves/till", "--conflicts", "Force", "--app", "web"]).await?.is(2, &["--app"]);
    run(bed, &["adopt", "moves/till", "--partly"]).await?.is(2, &["--conflicts"]);
    run(bed, &["adopt", "moves/till", "--conflicts", "All"]).await?.is(2, &["AdoptIfSame"]);
    run(bed, &["adopt", "moves/till", "--app", "x"]).await?.is(1, &["moves/till has no app x in revision 1"]);
    run(bed, &["adopt", "moves/till", "--cluster", "acme/away"])
        .await?
        .is(1, &["moves/till has nothing on cluster acme/away in revision 1"]);
    run(bed, &["adopt", "moves/none"]).await?.is(1, &["there is no deployment intent group none"]);
    Ok(())
}

/// What the page shows, with these names.
fn shown() -> Result<String> {
    let (_, text) = PAGE.split_once("$ kubectl emco adopt shop/till\n").context("the page shows no list")?;
    let lines = text.lines().take_while(|line| line.trim() != "```");
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    Ok(text.replace("acme/berlin", "acme/old").replace("shop", "moves"))
}

/// The command of the page that takes the release off Helm's list, with these names.
fn forget() -> Result<Vec<String>> {
    let line =
        PAGE.lines().find(|line| line.starts_with("$ kubectl delete secret ")).context("no such command")?;
    let line = line.trim_start_matches("$ kubectl ").replace("-n shop", "-n moves");
    Ok(line.split_whitespace().map(str::to_owned).collect())
}

#[tokio::test]
async fn a_helm_release_is_taken_over_in_place_and_forgotten_by_helm() {
    let (bed, _) = TAKEN.get().await.unwrap();
    bed.explain(Box::pin(async {
        let archive = bed.dir().join("web-1.0.0.tgz");
        std::fs::write(&archive, release()?.bytes)?;
        let archive = archive.display().to_string();
        let install = ["install", "web", &archive, "-n", "moves", "--create-namespace", "--set", "word=theirs"];
        helm(bed, &install).await?;
        let before = run_of_web(bed).await?;
        project(bed, "moves").await?;
        chart_map(bed, "moves", "charts", &[release()?]).await?;
        deploy(bed, "{word: ours}").await?;
        fails(bed, "moves").await?;
        is_listed(bed).await?;
        is_refused(bed).await?;
        // From here on Flux has the field.
        let fields = "{apiVersion: emco.io/v1alpha1, kind: DeploymentIntentGroup, metadata: {name: till, namespace: moves}, spec: {sync: {conflicts: Fail}}}";
        let apply = ["apply", "--server-side", "--field-manager=kustomize-controller", "-f", "-"];
        bed.hub().kubectl().run_with(&apply, fields).await?;
        run(bed, &["adopt", "moves/till", "--conflicts", "force"]).await?.is(
            0,
            &[
                "moves/till: spec.sync.conflicts is Force (it was Fail): the operator takes over 4 objects; `kubectl emco wait moves/till --for=applied`",
                "Flux has spec.sync.conflicts in Git, and will set it back",
            ],
        );
        deployed(bed, "moves", "till", 1).await?;
        ensure!(run_of_web(bed).await? == before, "a Pod was started anew");
        ensure!(field(bed, "moves", "secret/web-key", "{.data.word}").await? == "b3Vycw==");
        let said = run(bed, &["adopt", "moves/till"]).await?;
        said.is(0, &["acme/old, revision 1: no object of others under 4 names\nThere is nothing to take over.\n"]);

        ensure!(helm(bed, &["list", "-n", "moves", "-q"]).await? == "web\n");
        let forget = forget()?;
        bed.edge("old").kubectl().run(&forget.iter().map(String::as_str).collect::<Vec<_>>()).await?;
        ensure!(helm(bed, &["list", "-n", "moves", "-q", "--all"]).await?.is_empty());
        // A field that leaves the chart is still Helm's, says its entry in managedFields: the page says so.
        deploy(bed, "{word: ours, say: again, more: false}").await?;
        deployed(bed, "moves", "till", 2).await?;
        ensure!(field(bed, "moves", "cm/web-note", "{.data.say} {.data.more}").await? == "again yes");
        run(bed, &["adopt", "moves/till", "--conflicts", "Fail"])
            .await?
            .is(0, &["moves/till: spec.sync.conflicts is Fail (it was Force): nothing more is taken over"]);
        bed.hub().kubectl().run(&["delete", "dig", "till", "-n", "moves"]).await?;
        wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("moves").await?, "till", SOON).await?;
        ensure!(run_of_web(bed).await? == before, "what was taken over is released, never deleted");
        for object in ["cm/web-note", "secret/web-key", "svc/web", "deploy/web"] {
            let marks = field(bed, "moves", object, "{.metadata.labels}{.metadata.annotations}").await?;
            ensure!(!marks.contains("emco.io"), "{object}: {marks}");
        }
        Ok(())
    }))
    .await;
}

const MIXED: &str = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: hooked, annotations: {helm.sh/hook: pre-install}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shared}
data: {a: b}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "example.com/web:2"}]}
"#;

/// What others have under these names: all but what the first deployment brings.
fn theirs() -> String {
    let documents: Vec<&str> = MIXED.split("---").filter(|document| !document.contains("shared")).collect();
    documents.join("---").replace("web:2", "web:1")
}

#[tokio::test]
async fn adopt_says_what_no_value_takes_over_and_which_cluster_cannot_be_asked() {
    let _turn = CUTS.lock().await;
    let (bed, _) = TAKEN.get().await.unwrap();
    bed.explain(Box::pin(async {
        bed.edge("away").restore().await?;
        project(bed, "mixed").await?;
        let shared = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shared}\ndata: {a: b}\n";
        let first = chart("first", "1.0.0", &[("templates/shared.yaml", shared)])?;
        let mixed = chart("mixed", "1.0.0", &[("templates/all.yaml", MIXED)])?;
        chart_map(bed, "mixed", "charts", &[first.clone(), mixed.clone()]).await?;
        let on_old = "placement: {allOf: [{provider: acme, cluster: old}]}";
        bed.hub().kubectl().apply(&deployment("mixed", "first", &[first], on_old)).await?;
        deployed(bed, "mixed", "first", 1).await?;
        bed.edge("old").kubectl().apply_to("mixed", &theirs()).await?;

        let planned = format!("{EVERYWHERE}\ndesiredState: Planned");
        bed.hub().kubectl().apply(&deployment("mixed", "till", std::slice::from_ref(&mixed), &planned)).await?;
        wait(bed, "mixed", "till", |dig: &DeploymentIntentGroup| {
            let pending = dig.status.as_ref().and_then(|status| status.pending.as_ref());
            pending.map(drop).ok_or_else(|| "nothing is planned".to_owned())
        })
        .await?;
        run(bed, &["adopt", "mixed/till"])
            .await?
            .is(1, &["mixed/till has no stored revision: its first plan waits", "kubectl emco plan mixed/till"]);

        bed.hub().kubectl().apply(&deployment("mixed", "till", &[mixed], EVERYWHERE)).await?;
        fails(bed, "mixed").await?;
        let said = run(bed, &["adopt", "mixed/till"]).await?;
        said.is(
            3,
            &[
                "ConfigMap/mixed/shared (app mixed) of mixed/first: another deployment has it",
                "ConfigMap/mixed/hooked (app mixed) of kubectl: in the way of a hook",
                "apps/Deployment/mixed/web (app mixed) of kubectl: Force, and its Pods restart\n    spec.template.spec.containers[0].image: \"example.com/web:1\" -> \"example.com/web:2\"",
                "Pods of 1 workload restart",
                "No value takes over 2 objects, which are marked above.",
            ],
        );
        let refused = ["adopt", "mixed/till", "--conflicts", "Force"];
        run(bed, &refused).await?.is(1, &["Force leaves 2 objects", "is taken over by no value"]);

        bed.edge("away").refuse().await?;
        let said = run(bed, &["adopt", "mixed/till", "-o", "json"]).await?;
        said.is(3, &["the cluster cannot be reached"]);
        let json = said.json();
        ensure!(json["clusters"][0]["cluster"] == "acme/away" && json["clusters"][0]["error"].is_string(), "{json:#}");
        ensure!(json["clusters"][1]["objects"][0]["obstacle"].is_string(), "{json:#}");
        run(bed, &refused).await?.is(1, &["1 cluster cannot be asked: acme/away"]);
        ensure!(conflicts(bed, "mixed").await? == ConflictPolicy::Fail);
        let said = run(bed, &["adopt", "mixed/till", "--conflicts", "Force", "--partly", "-o", "json"]).await?;
        said.is(3, &[]);
        let change = &said.json()["change"];
        ensure!(change["before"] == "Fail" && change["now"] == "Force" && change["changed"] == true, "{change:#}");
        ensure!(conflicts(bed, "mixed").await? == ConflictPolicy::Force);
        bed.edge("away").restore().await?;
        let tenant = tenant(bed, "mixed").await?;
        run_as(bed, &tenant, &["adopt", "mixed/till"]).await?.is(1, &["adopt is for administrators of the hub"]);
        Ok(())
    }))
    .await;
}
