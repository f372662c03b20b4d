//! A cluster that is added at level Standard: the operator does its whole work there with the rights of that level, uses each of them, and
//! the cluster refuses its account everything else.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::conditions::types;
use emco_crds::{DeploymentIntentGroup, LogicalCloud};
use emco_e2e::audit::AuditEvent;
use emco_e2e::bed::Bed;
use emco_e2e::kubectl::Kubectl;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, is, project, wait};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::rig::{STAGE, Said, file, run};

/// The plane, which nobody else uses.
const EDGE: &str = "i";
const SPACE: &str = "renters";
/// Namespace on the cluster.
const THERE: &str = "renters-there";
/// As audit logs have it.
const ACCOUNT: &str = "system:serviceaccount:emco-system:emco-hub";

const PROVIDER: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: fenced, labels: {emco.io/provider: fenced}}
---
apiVersion: emco.io/v1alpha1
kind: ClusterProvider
metadata: {name: fenced}
spec: {grants: [{name: renters, projects: [renters], maxLevel: Standard}]}
";

/// What the owner of the cluster lets tenants have at most.
const CEILING: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: emco-ceiling}
rules:
- apiGroups: ['', apps]
  resources: [configmaps, secrets, deployments]
  verbs: [get, list, watch, create, patch, delete]
";

const OBJECTS: &str = "
apiVersion: v1
kind: ConfigMap
metadata: {name: note}
data: {say: {{ .Values.say }}}
---
apiVersion: v1
kind: Secret
metadata: {name: key}
stringData: {word: hidden}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {automountServiceAccountToken: false, containers: [{name: web, image: example.com/web}]}
{{- if .Values.more }}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: more}
{{- end }}
";

/// The logical cloud; `permissions` and what follows is YAML in braces.
fn spec(more: &str) -> String {
    format!(
        "{{apiVersion: emco.io/v1alpha1, kind: LogicalCloud, metadata: {{name: tenant, namespace: {SPACE}}}, spec: {{level: Standard, \
         namespace: {THERE}, clusters: [{{provider: fenced, selector: {{}}}}], isolation: DefaultDeny, \
         user: {{name: ann}}, credentials: {{type: ServiceAccountToken}}, quotas: [{{name: some, hard: {{pods: '10'}}}}], \
         limitRanges: [{{name: small, limits: [{{type: Container, default: {{memory: 64Mi}}}}]}}]{more}}}}}"
    )
}

/// Applies it, and waits until it is ready.
async fn cloud(bed: &Bed, more: &str) -> Result<()> {
    bed.hub().kubectl().apply(&spec(more)).await?;
    wait(bed, SPACE, "tenant", |cloud: &LogicalCloud| {
        let current = cloud.status.as_ref().and_then(|status| status.observed_generation);
        if current != cloud.metadata.generation {
            return Err("the last change was not looked at yet".to_owned());
        }
        is(cloud.status.as_ref(), types::READY, "True")
    })
    .await
    .map(drop)
}

async fn deploy(bed: &Bed, charts: &[Package], values: &Value, revision: i64) -> Result<()> {
    let spec = format!(
        "placement: {{allOf: [{{provider: fenced, selector: {{}}}}]}}\nlogicalCloudRef: {{name: tenant}}\n\
         overrideValues: [{{app: web, values: {values}}}]"
    );
    bed.hub().kubectl().apply(&deployment(SPACE, "shop", charts, &spec)).await?;
    deployed(bed, SPACE, "shop", revision).await.map(drop)
}

async fn note(bed: &Bed) -> Result<String> {
    let get = ["get", "configmap", "note", "-n", THERE, "-o", "jsonpath={.data.say}"];
    bed.edge(EDGE).kubectl().run(&get).await
}

/// Deployed, changed, pruned, repaired, with other permissions, and changed again.
async fn a_life(bed: &Bed) -> Result<()> {
    project(bed, SPACE).await?;
    let files = [("values.yaml", "say: one\nmore: true\n"), ("templates/all.yaml", OBJECTS)];
    let charts = [chart("web", "1.0.0", &files)?];
    chart_map(bed, SPACE, "charts", &charts).await?;
    cloud(bed, "").await?;
    // Ready: the health of the Deployment is seen.
    deploy(bed, &charts, &json!({"say": "one"}), 1).await?;
    ensure!(note(bed).await? == "one");
    a_person_has_their_own_rights_alone(bed).await?;
    deploy(bed, &charts, &json!({"say": "two", "more": false}), 2).await?;
    ensure!(note(bed).await? == "two");
    let maps = bed.edge(EDGE).api::<ConfigMap>(THERE).await?;
    ensure!(maps.get_opt("more").await?.is_none(), "what a revision leaves out is removed");

    let edge = bed.edge(EDGE).kubectl();
    edge.run(&["delete", "configmap", "note", "-n", THERE]).await?;
    edge.until(&["get", "configmap", "note", "-n", THERE], "", true).await?;
    let set =
        ["patch", "configmap", "note", "-n", THERE, "--type=merge", "-p", r#"{"data":{"say":"other"}}"#];
    edge.run(&set).await?;
    let again = ["wait", "configmap/note", "-n", THERE, "--for=jsonpath={.data.say}=two", "--timeout=60s"];
    edge.run(&again).await?;

    // Rules of its own, below the ceiling.
    cloud(bed, ", permissions: [{name: own, derived: true}]").await?;
    deploy(bed, &charts, &json!({"say": "three", "more": false}), 3).await?;
    ensure!(note(bed).await? == "three");
    Ok(())
}

/// The role of the level, before or after a cluster is added, names each resource.
async fn is_printed(bed: &Bed) -> Result<()> {
    let said = run(bed, &["role", "--level", "Standard", "--cluster", "fenced/fence"]).await?;
    said.is(0, &["name: emco-hub-tenant", "# namespaces of logical clouds\n"]);
    // Policies refuse whatever they match: there it stands for what they refuse.
    let roles = said
        .out
        .split("---\n")
        .filter(|text| text.contains("kind: Role\n") || text.contains("kind: ClusterRole\n"));
    let wild: Vec<&str> = roles.filter(|role| role.contains("'*'")).collect();
    ensure!(wild.is_empty(), "{wild:?}");
    run(bed, &["role", "--level", "Standard"]).await?.is(1, &["--cluster PROVIDER/CLUSTER"]);
    Ok(())
}

/// The owner of the cluster allows less than what runs there has: that runs on, and nobody is given more.
async fn a_ceiling_that_shrinks(bed: &Bed) -> Result<()> {
    let edge = bed.edge(EDGE).kubectl();
    edge.apply(&CEILING.replace("configmaps, secrets, deployments", "configmaps, deployments")).await?;
    let rules = "{apiGroups: ['', apps], resources: [configmaps, secrets, deployments], verbs: [get, list, watch, create, patch, delete]}";
    let text = spec(&format!(", permissions: [{{name: own, rules: [{rules}]}}]"));
    bed.hub().kubectl().apply(&text).await?;
    wait(bed, SPACE, "tenant", |cloud: &LogicalCloud| {
        let said = serde_json::to_string(&cloud.status).map_err(|error| error.to_string())?;
        if said.contains("at most the ClusterRole emco-ceiling") { Ok(()) } else { Err(said) }
    })
    .await?;
    edge.run(&["get", "secret/key", "configmap/note", "deployment/web", "-n", THERE]).await?;
    edge.apply(CEILING).await?;
    cloud(bed, ", permissions: [{name: own, derived: true}]").await
}

/// Everything leaves, the cluster too.
async fn leave(bed: &Bed) -> Result<Said> {
    let hub = bed.hub();
    let drain = ["cluster", "drain", "fenced/fence", "--timeout", "2s"];
    run(bed, &drain).await?.is(3, &["is not drained", "DeploymentIntentGroup/renters/shop"]);
    hub.kubectl().run(&["delete", "dig", "shop", "-n", SPACE, "--wait=false"]).await?;
    wait_until_gone(hub.api::<DeploymentIntentGroup>(SPACE).await?, "shop", SOON).await?;
    hub.kubectl().run(&["delete", "lc", "tenant", "-n", SPACE, "--wait=false"]).await?;
    wait_until_gone(hub.api::<LogicalCloud>(SPACE).await?, "tenant", SOON).await?;
    let namespaces = Api::<Namespace>::all(bed.edge(EDGE).client().await?);
    wait_until_gone(namespaces, THERE, SOON).await?;
    run(bed, &["cluster", "remove", "fenced/fence"]).await
}

/// kubectl as the account, by what the hub has stored.
async fn as_account(bed: &Bed) -> Result<Kubectl> {
    let get = ["get", "secret", "fence-kubeconfig", "-n", "fenced", "-o", "jsonpath={.data.kubeconfig}"];
    let stored = STANDARD.decode(bed.hub().kubectl().run(&get).await?.trim())?;
    let path: PathBuf = file(bed, "fence.kubeconfig", &String::from_utf8(stored)?).await?;
    Ok(bed.edge(EDGE).kubectl().with_kubeconfig(&path))
}

/// What the cluster refuses the account, in its words.
async fn reaches_nothing_else(bed: &Bed) -> Result<()> {
    let kubectl = as_account(bed).await?;
    let of_cloud = "changes namespaces of logical clouds alone";
    for (args, says) in [
        ("get secrets -n kube-system", "cannot list resource \"secrets\""),
        ("get pods -n kube-system --as=system:serviceaccount:kube-system:default", "cannot impersonate"),
        ("delete namespace kube-node-lease", of_cloud),
        ("create namespace mine", of_cloud),
        ("label namespace kube-system emco.io/project=renters emco.io/owner=me", of_cloud),
        ("create quota mine -n kube-system --hard=pods=1", "cannot create resource \"resourcequotas\""),
        (
            "create rolebinding mine -n kube-system --clusterrole=admin --serviceaccount=kube-system:default",
            "changes role bindings in namespaces with the label emco.io/project alone",
        ),
        (
            "create rolebinding mine -n renters-there --clusterrole=admin --user=eve",
            "binds roles to accounts and people of logical clouds alone",
        ),
        (
            "create rolebinding mine -n renters-there --clusterrole=cluster-admin --serviceaccount=renters-there:emco-tenant",
            "is forbidden",
        ),
        (
            "create role mine -n renters-there --verb=create --resource=leases.coordination.k8s.io",
            "not currently held",
        ),
        ("create clusterrolebinding mine --clusterrole=admin --user=emco:ann", "cannot create resource"),
        ("delete validatingadmissionpolicybinding emco-hub-namespaces", "forbidden"),
    ] {
        let output = kubectl.output(&args.split(' ').collect::<Vec<_>>(), "").await?;
        ensure!(!output.is_ok() && output.stderr.contains(says), "{args}: {says:?} was wanted of {output:?}");
    }
    Ok(())
}

/// What the person of the logical cloud made would outlive the credentials.
async fn a_person_has_their_own_rights_alone(bed: &Bed) -> Result<()> {
    let get = ["get", "secret", "tenant-kubeconfig", "-n", SPACE, "-o", "jsonpath={.data.kubeconfig}"];
    let stored = STANDARD.decode(bed.hub().kubectl().run(&get).await?.trim())?;
    let path: PathBuf = file(bed, "ann.kubeconfig", &String::from_utf8(stored)?).await?;
    let ann = bed.edge(EDGE).kubectl().with_kubeconfig(&path);
    ann.until(&["get", "configmaps", "-n", THERE], "", true).await?;
    let secret = "{apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: forever, namespace: \
                  renters-there, annotations: {kubernetes.io/service-account.name: emco-tenant}}}";
    let pod = "{apiVersion: v1, kind: Pod, metadata: {name: mine, namespace: renters-there}, spec: {serviceAccountName: emco-tenant, \
               automountServiceAccountToken: false, containers: [{name: web, image: example.com/web}]}}";
    for (args, input, says) in [
        (
            "create token emco-tenant -n renters-there --duration=8760h",
            "",
            "nobody else gets a token of theirs",
        ),
        ("create -f -", secret, "no Secret has a token of theirs"),
        ("create -f -", pod, "no pod runs as them"),
        (
            "create rolebinding again -n renters-there --clusterrole=admin --serviceaccount=renters-there:default",
            "",
            "give rights to nobody",
        ),
    ] {
        let output = ann.output(&args.split(' ').collect::<Vec<_>>(), input).await?;
        ensure!(!output.is_ok() && output.stderr.contains(says), "{args}: {says:?} was wanted of {output:?}");
    }
    Ok(())
}

/// A right: API group, resource with its subresource, verb.
type Right = (String, String, String);

/// What the account has on the cluster, with the role that gives it.
async fn given(bed: &Bed) -> Result<BTreeSet<(&'static str, Right)>> {
    let mut rights = BTreeSet::new();
    for (name, role) in [
        ("everywhere", &["clusterrole", "emco-hub"][..]),
        ("tenant", &["clusterrole", "emco-hub-tenant"]),
        ("own", &["role", "emco-hub", "-n", "emco-system"]),
    ] {
        let args = [&["get"][..], role, &["-o", "json"]].concat();
        let role: Value = serde_json::from_str(&bed.edge(EDGE).kubectl().run(&args).await?)?;
        for rule in role["rules"].as_array().context("no rules")? {
            let list = |key: &str| -> Vec<String> {
                let all = rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
                all.map(str::to_owned).collect()
            };
            for group in list("apiGroups") {
                for resource in list("resources") {
                    for verb in list("verbs") {
                        ensure!(verb != "escalate", "{rule}");
                        ensure!(![&group, &resource, &verb].iter().any(|word| word.contains('*')), "{rule}");
                        rights.insert((name, (group.clone(), resource.clone(), verb)));
                    }
                }
            }
        }
    }
    Ok(rights)
}

/// Rights that this life has no use for.
fn is_for_others((role, (_, resource, verb)): &(&str, Right)) -> bool {
    let is_one_of = |all: &[&str]| all.contains(&resource.as_str());
    match (*role, verb.as_str()) {
        // It is no request.
        (_, "bind") => true,
        // Definitions are read where one is not served.
        ("everywhere", _) => verb == "get" && is_one_of(&["customresourcedefinitions", "apiservices"]),
        // A claim is taken over where another hub had the cluster, and a token Secret is waited for where bound tokens are short.
        ("own", "update") => is_one_of(&["configmaps"]),
        ("own", _) => is_one_of(&["secrets"]) && (verb == "get" || verb == "watch"),
        // Which kinds deployments have differs; whether a namespace holds anything of others is asked of all kinds but these.
        (_, "list") => is_one_of(&["events", "endpoints", "endpointslices", "leases"]),
        (_, "delete") => {
            !is_one_of(&["resourcequotas", "limitranges", "serviceaccounts", "networkpolicies", "roles"])
        }
        _ => verb == "get" || verb == "watch",
    }
}

/// What nobody has used, once the ends of watches are in the audit log.
async fn unused(bed: &Bed, given: &BTreeSet<(&'static str, Right)>) -> Result<Vec<String>> {
    let deadline = Instant::now() + SOON;
    loop {
        let used = used(&bed.edge(EDGE).audit()?);
        let open = given.iter().filter(|one| !used.contains(&one.1) && !is_for_others(one));
        let open: Vec<String> = open.map(|one| format!("{one:?}")).collect();
        if open.is_empty() || Instant::now() > deadline {
            return Ok(open);
        }
        // The log is a file; nothing tells of its growth.
        sleep(Duration::from_millis(500)).await;
    }
}

/// What the account asked for and got.
fn used(events: &[AuditEvent]) -> BTreeSet<Right> {
    let mut rights = BTreeSet::new();
    for event in events.iter().filter(|event| event.user == ACCOUNT && event.code != 403) {
        if !event.acting_as.is_empty() {
            rights.insert((String::new(), "serviceaccounts".to_owned(), "impersonate".to_owned()));
            continue;
        }
        let resource = match event.subresource.as_str() {
            "" => event.resource.clone(),
            sub => format!("{}/{sub}", event.resource),
        };
        rights.insert((event.group.clone(), resource.clone(), event.verb.clone()));
        // Server-side apply makes what is not there.
        if event.code == 201 {
            rights.insert((event.group.clone(), resource, "create".to_owned()));
        }
    }
    rights
}

/// Refusals that were no question whether the whole cluster may be listed, and that no later answer took back.
fn refused(events: &[AuditEvent]) -> Vec<String> {
    let mine = |event: &&AuditEvent| event.user == ACCOUNT;
    let whole =
        |event: &AuditEvent| event.namespace.is_empty() && ["list", "watch"].contains(&event.verb.as_str());
    let bad = events.iter().filter(mine).filter(|event| event.code == 403 && !whole(event));
    let later = |bad: &AuditEvent| {
        let same = |event: &&AuditEvent| {
            event.code < 300
                && (&event.verb, &event.group, &event.resource, &event.namespace, &event.name)
                    == (&bad.verb, &bad.group, &bad.resource, &bad.namespace, &bad.name)
        };
        events.iter().filter(mine).filter(same).any(|event| event.received > bad.received)
    };
    bad.filter(|event| !later(event))
        .map(|event| format!("{} {} as {:?}", event.verb, event.uri, event.acting_as))
        .collect()
}

#[tokio::test]
async fn level_standard_is_enough_for_all_work_and_reaches_nothing_else() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(Box::pin(async {
        let edge = bed.edge(EDGE).kubectl();
        edge.apply(CEILING).await?;
        bed.hub().kubectl().apply(PROVIDER).await?;
        let path =
            file(bed, "i-admin.kubeconfig", &bed.edge(EDGE).kubeconfig()?).await?.display().to_string();
        // Level Standard is meant where none is named.
        let add = ["cluster", "add", "fenced/fence", "--kubeconfig", &path];
        let more = ["--may-bind", "admin", "--people", "ServiceAccountToken"];
        let add = [&add[..], &more].concat();
        let dry = run(bed, &[&add[..], &["--dry-run"]].concat()).await?;
        dry.is(
            0,
            &[
                "# namespaces of logical clouds\n",
                "kind: ValidatingAdmissionPolicyBinding",
                "name: emco-hub-tenant",
            ],
        );
        run(bed, &add).await?.is(0, &["fenced/fence is registered and ready"]);
        run(bed, &add).await?.is(0, &["the stored token still works and is kept"]);
        run(bed, &[&add[..2], &["fenced/other"], &add[3..], &["--dry-run"]].concat())
            .await?
            .is(1, &["is registered already, as fenced/fence"]);
        is_printed(bed).await?;

        a_life(bed).await?;
        run(bed, &["cluster", "rotate", "fenced/fence"]).await?.is(0, &["fenced/fence has new credentials"]);
        let events = bed.edge(EDGE).audit()?;
        reaches_nothing_else(bed).await?;
        a_ceiling_that_shrinks(bed).await?;
        let refused = refused(&events);
        ensure!(refused.is_empty(), "{refused:#?}");

        let given = given(bed).await?;
        let said = leave(bed).await?;
        said.is(3, &["may change neither its rights nor what confines it", "clusterrole emco-hub-tenant"]);
        let unused = unused(bed, &given).await?;
        ensure!(unused.is_empty(), "no use was made of {unused:#?}");

        // What stays was said with commands; they are run as printed.
        for command in said.err.lines().filter_map(|line| line.strip_prefix("  kubectl ")) {
            edge.run(&command.split(' ').collect::<Vec<_>>()).await?;
        }
        let kinds =
            "clusterrole,clusterrolebinding,validatingadmissionpolicy,validatingadmissionpolicybinding";
        let left = edge.run(&["get", kinds, "-o", "name"]).await?;
        ensure!(!left.contains("emco-hub"), "{left}");
        Ok(())
    }))
    .await;
}
