//! In: charts in real registries and Git repositories, clusters that Argo CD knows, and addresses that must not be reached. Out:
//! what is deployed of them, what each server was asked and with which login, and what is refused with which sentence.

mod archives;
mod argocd;
mod authority;
mod git;
mod new_pod;
mod outside;
mod over_bound;
mod registry;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, ensure};
use emco_crds::CompositeApp;
use emco_crds::conditions::types;
use emco_e2e::bed::{Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::git_server::GitServer;
use emco_e2e::operator::{
    OperatorInTurn, SharedOperator, binary_map, chart, is, project, says as says_now, wait,
};
use emco_e2e::package::Package;
use emco_e2e::public::Internet;
use emco_e2e::registry::{Guard, Registry};
use emco_e2e::repository::Repository;
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

/// Public addresses are behind a proxy of ours; `b` is registered by a test. Nothing ends that controllers would have to clean.
static STAGE: SharedOperator = SharedOperator::new(
    || {
        let edge = |name| PlaneSpec::new(name, Parts::ApiServer);
        BedSpec::bare_hub().with(edge("a")).with(edge("b"))
    },
    &["a"],
)
.with(|| vec![("EMCO_PROXY", Internet::get().proxy())]);
/// For tests that replace the operator, or start it with settings of their own. What is deployed on `a` is ready when it is there.
static IN_TURN: OperatorInTurn =
    OperatorInTurn::new(|| BedSpec::bare_hub().with(PlaneSpec::new("a", Parts::ApiServer)));

const NOTE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: one}\n";

fn note(version: &str, say: &str) -> Package {
    let template = NOTE.replace("one", say);
    chart("note", version, &[("templates/note.yaml", &template)]).unwrap()
}

/// A project that may take charts from these places; from public ones if none are given.
async fn begin(name: &str, sources: Option<&[String]>) -> Result<&'static Bed> {
    let (bed, _) = STAGE.get().await?;
    project(bed, name).await?;
    list(bed, name, sources).await?;
    Ok(bed)
}

async fn list(bed: &Bed, project: &str, sources: Option<&[String]>) -> Result<()> {
    let patch = json!({"spec": {"chartSources": sources}}).to_string();
    bed.hub().kubectl().run(&["patch", "eproj", project, "--type=merge", "-p", &patch]).await.map(drop)
}

/// The Secret `login`.
async fn login(bed: &Bed, namespace: &str, content: Value) -> Result<()> {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": namespace},
        "stringData": content,
    });
    bed.hub().kubectl().apply(&secret.to_string()).await.map(drop)
}

/// The app `note` from a source, and its deployment on `a`.
async fn deploy(bed: &Bed, namespace: &str, source: &Value) -> Result<()> {
    let app = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp",
        "metadata": {"name": "shop", "namespace": namespace},
        "spec": {"apps": [{"name": "note", "chart": source}]},
    });
    let group = json!({
        "apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
        "metadata": {"name": "shop", "namespace": namespace},
        "spec": {
            "compositeAppRef": {"name": "shop"},
            "placement": {"allOf": [{"provider": "acme", "cluster": "a"}]},
        },
    });
    bed.hub()
        .kubectl()
        .apply(&json!({"apiVersion": "v1", "kind": "List", "items": [app, group]}).to_string())
        .await?;
    Ok(())
}

/// The message of Ready of the app that was refused for `reason`.
async fn says(bed: &Bed, namespace: &str, reason: &str) -> Result<String> {
    says_now::<CompositeApp, _>(bed, namespace, "shop", types::READY, reason).await
}

/// What the note on `a` says.
async fn said(bed: &Bed, namespace: &str) -> Result<String> {
    let map = bed.edge("a").api::<ConfigMap>(namespace).await?.get("note").await?;
    map.data.and_then(|mut data| data.remove("say")).context("the note says nothing")
}

fn has(text: &str, wanted: &[&str]) {
    for part in wanted {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

/// The examples of the book's page on charts, with servers of ours in the place of those that it names.
#[tokio::test]
async fn the_examples_of_the_book_run() {
    let (bed, _) = STAGE.get().await.unwrap();
    let repository = Repository::start([note("1.0.0", "one")]).await.unwrap();
    let registry = Registry::start(bed, "book", Guard::Nobody).await.unwrap();
    let git = GitServer::start(None).await.unwrap();
    let page = std::fs::read_to_string(emco_e2e::operator::root().join("docs/charts.md")).unwrap();
    let swapped = [
        ("https://charts.example.com/stable", repository.url()),
        ("https://git.example.com/team/charts.git", git.url()),
        ("registry.example.com", registry.host().to_owned()),
    ];
    let page = swapped.iter().fold(page, |page, (from, to)| {
        assert!(page.contains(from), "the page names {from} no more");
        page.replace(from, to)
    });
    let sources = [format!("{}/", repository.url()), format!("http://{}/", registry.host()), git.url()];
    let bed = begin("shop", Some(&sources)).await.unwrap();
    bed.explain(async {
        registry.push(&note("1.0.0", "one"), "charts").await?;
        let chart = "apiVersion: v2\nname: note\nversion: 1.0.0\n";
        git.commit(&[("deploy/note/Chart.yaml", chart), ("deploy/note/templates/note.yaml", NOTE)]).await?;
        let legacy = BTreeMap::from([("chart.tgz".to_owned(), note("1.0.0", "one").bytes)]);
        binary_map(bed, "shop", "legacy-chart", legacy).await?;
        let mut names = Vec::new();
        for block in page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()) {
            if block.contains("kind: CompositeApp") {
                bed.hub().kubectl().apply(block).await?;
                let app: Value = serde_yaml::from_str(block)?;
                names.push(app["metadata"]["name"].as_str().context("no name")?.to_owned());
            }
        }
        ensure!(names == ["unchecked", "from-repository", "from-registry", "from-git"], "{names:?}");
        for name in names {
            wait(bed, "shop", &name, |app: &CompositeApp| is(app.status.as_ref(), types::READY, "True"))
                .await?;
        }
        Ok(())
    })
    .await;
}
