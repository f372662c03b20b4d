//! Questions of members: each is answered once and goes, and a command runs where the Project and a change of the question let it.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::rig::{Rig, emco, settled_with};
use super::shop::{TENANT, objects};
use crate::api::ApiServerExt as _;
use crate::api::views::{Answers, Asked};

/// Remembers what it is asked, and answers with the command, or with nothing.
#[derive(Default)]
struct Parrot(Mutex<Vec<Asked>>);

impl Answers for Parrot {
    fn answer(&self, asked: Asked) -> BoxFuture<'_, Result<Value, String>> {
        let command = asked.question.command.clone();
        self.0.lock().push(asked);
        let answer = if command.first().is_some_and(|word| word == "fail") {
            Err("the cluster refuses".to_owned())
        } else {
            Ok(json!({ "said": command }))
        };
        Box::pin(futures::future::ready(answer))
    }
}

impl Parrot {
    fn heard(&self) -> usize {
        self.0.lock().len()
    }
}

/// A tenant's deployment, in a project with this `exec`.
async fn asked_of(exec: Option<&str>) -> (Rig, Arc<Parrot>) {
    let mut all = objects();
    for object in &mut all {
        if object["kind"] == "Project" {
            object["spec"]["exec"] = json!(exec);
        }
    }
    let mut rig = settled_with(all).await;
    let parrot = Arc::new(Parrot::default());
    rig.ctx.answers = parrot.clone();
    (rig, parrot)
}

fn view(question: &Value, released: bool) -> Value {
    let mut spec = json!({"deploymentIntentGroupRef": {"name": "shop"}, "question": question});
    if released {
        spec["released"] = json!(true);
    }
    emco("DeploymentView", Some("team-a"), "v", &spec)
}

/// The question for a command on one cluster.
fn command(word: &str) -> Value {
    json!({"what": "Exec", "clusters": ["acme/a"], "command": [word]})
}

fn path() -> String {
    format!("{TENANT}/deploymentviews/v")
}

fn status(rig: &Rig) -> Value {
    rig.hub.object(&path()).map(|view| view["status"].clone()).unwrap_or_default()
}

fn unpacked(status: &Value) -> Value {
    let bytes = STANDARD.decode(status["answer"].as_str().unwrap()).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[tokio::test]
async fn a_question_is_answered_once_and_goes_after_half_a_minute() {
    let (mut rig, parrot) = asked_of(None).await;
    rig.hub.put("ann", &view(&json!({"what": "Manifests", "apps": ["web"]}), false));
    rig.settle().await;
    assert_eq!(status(&rig)["state"], "Answered");
    assert_eq!(unpacked(&status(&rig)), json!({"said": []}));
    {
        let heard = parrot.0.lock();
        let [asked] = &heard[..] else { panic!("{heard:?}") };
        assert_eq!((asked.namespace.as_str(), asked.deployment.as_str()), ("team-a", "shop"));
        assert_eq!(asked.question.apps, ["web"]);
    }
    rig.clock.forward(Duration::from_secs(29));
    rig.settle().await;
    assert!(rig.hub.object(&path()).is_some());
    rig.clock.forward(Duration::from_secs(1));
    rig.settle().await;
    assert!(rig.hub.object(&path()).is_none());
    assert_eq!(parrot.heard(), 1);
}

#[tokio::test]
async fn questions_beyond_the_project_and_the_deployment_are_refused() {
    let (mut rig, parrot) = asked_of(None).await;
    rig.hub.put("test", &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "free"}}));
    let mut free = view(&json!({"what": "Objects"}), false);
    free["metadata"]["namespace"] = json!("free");
    rig.hub.put("mallory", &free);
    let mut other = view(&json!({"what": "Objects"}), false);
    other["spec"]["deploymentIntentGroupRef"]["name"] = json!("till");
    rig.hub.put("mallory", &other);
    rig.settle().await;
    assert_eq!(status(&rig)["message"], "there is no deployment intent group till in namespace team-a");
    let free = rig.hub.object("/apis/emco.io/v1alpha1/namespaces/free/deploymentviews/v").unwrap();
    assert_eq!(free["status"]["message"], "namespace free is no project's");
    assert_eq!(parrot.heard(), 0);
}

#[tokio::test]
async fn a_command_runs_once_after_a_change_of_the_question() {
    let (mut rig, parrot) = asked_of(Some("Editors")).await;
    // Who may only create says so at once, and nothing runs.
    rig.hub.put("viewer", &view(&command("date"), true));
    rig.settle().await;
    assert_eq!((status(&rig)["state"].clone(), parrot.heard()), (json!("Waiting"), 0));
    rig.hub.merge(&path(), &json!({"spec": {"released": false}})).await.unwrap();
    rig.settle().await;
    assert_eq!(parrot.heard(), 0, "a change that takes it back releases nothing");
    rig.hub.merge(&path(), &json!({"spec": {"released": true}})).await.unwrap();
    rig.settle().await;
    assert_eq!(unpacked(&status(&rig)), json!({"said": ["date"]}));
    rig.settle().await;
    assert_eq!(parrot.heard(), 1);
}

#[tokio::test]
async fn a_command_that_nobody_releases_goes() {
    let (mut rig, parrot) = asked_of(Some("Editors")).await;
    rig.hub.put("viewer", &view(&command("date"), true));
    rig.settle().await;
    rig.clock.forward(Duration::from_secs(30));
    rig.settle().await;
    assert!(rig.hub.object(&path()).is_none());
    assert_eq!(parrot.heard(), 0);
}

#[tokio::test]
async fn a_command_is_refused_where_the_project_lets_nobody_run_any() {
    for exec in [None, Some("Nobody")] {
        let (mut rig, parrot) = asked_of(exec).await;
        rig.hub.put("editor", &view(&command("date"), false));
        rig.hub.merge(&path(), &json!({"spec": {"released": true}})).await.unwrap();
        rig.settle().await;
        let said = status(&rig)["message"].to_string();
        assert!(said.contains("sets its spec.exec to Editors"), "{said}");
        assert_eq!(parrot.heard(), 0);
    }
}

#[tokio::test]
async fn no_command_begins_where_the_grant_is_withdrawn() {
    let grants =
        |level: &str| json!({"grants": [{"name": "all", "projects": ["team-a"], "maxLevel": level}]});
    let (mut rig, parrot) = asked_of(Some("Editors")).await;
    rig.hub.put("test", &emco("ClusterProvider", None, "acme", &grants("Standard")));
    rig.settle().await;
    rig.hub.put("editor", &view(&command("date"), false));
    rig.hub.merge(&path(), &json!({"spec": {"released": true}})).await.unwrap();
    rig.settle().await;
    let said = status(&rig)["message"].to_string();
    assert!(said.contains("project team-a is not granted level Admin on cluster acme/a any more"), "{said}");
    rig.clock.forward(Duration::from_secs(30));
    rig.settle().await;
    rig.hub.put("test", &emco("ClusterProvider", None, "acme", &grants("Admin")));
    rig.hub.put("editor", &view(&json!({"what": "Exec", "command": ["date"]}), false));
    rig.hub.merge(&path(), &json!({"spec": {"released": true}})).await.unwrap();
    rig.settle().await;
    let said = status(&rig)["message"].to_string();
    assert!(said.contains("a command runs on one cluster: name it with --cluster"), "{said}");
    assert_eq!(parrot.heard(), 0);
}

#[tokio::test]
async fn an_answer_goes_with_its_question_also_where_somebody_holds_that() {
    let (mut rig, parrot) = asked_of(None).await;
    let mut held = view(&json!({"what": "Manifests"}), false);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    rig.hub.put("mallory", &held);
    rig.settle().await;
    assert_eq!(status(&rig)["state"], "Answered");
    rig.clock.forward(Duration::from_secs(30));
    rig.settle().await;
    let view = rig.hub.object(&path()).unwrap();
    assert!(view["metadata"]["deletionTimestamp"].is_string(), "{view}");
    assert_eq!((&view["status"]["state"], view["status"].get("answer")), (&json!("Refused"), None));
    assert_eq!(parrot.heard(), 1);
}

#[tokio::test]
async fn a_project_is_given_so_much_in_a_minute() {
    let (mut rig, parrot) = asked_of(None).await;
    while rig.ctx.answered.has_room("team-a") {
        rig.ctx.answered.add("team-a", 1 << 20);
    }
    rig.hub.put("ann", &view(&json!({"what": "Objects"}), false));
    rig.settle().await;
    let said = status(&rig)["message"].to_string();
    assert!(said.contains("namespace team-a was given many answers just now"), "{said}");
    assert_eq!(parrot.heard(), 0);
}

#[tokio::test]
async fn a_command_that_was_cut_off_is_not_run_again() {
    let (mut rig, parrot) = asked_of(Some("Editors")).await;
    rig.hub.put("editor", &view(&command("date"), false));
    rig.hub.merge(&path(), &json!({"spec": {"released": true}})).await.unwrap();
    rig.hub.set_status(&path(), &json!({"state": "Running", "at": "2026-11-21T07:00:00Z"})).unwrap();
    rig.settle().await;
    let said = status(&rig)["message"].to_string();
    assert!(said.contains("whether it ran to its end is not known"), "{said}");
    assert_eq!(parrot.heard(), 0);
}

#[tokio::test]
async fn what_fails_is_said_and_asked_no_more() {
    let (mut rig, parrot) = asked_of(Some("Editors")).await;
    rig.hub.put("editor", &view(&command("fail"), false));
    rig.hub.merge(&path(), &json!({"spec": {"released": true}})).await.unwrap();
    rig.settle().await;
    assert_eq!(status(&rig)["message"], "the cluster refuses");
    assert_eq!((status(&rig)["state"].clone(), parrot.heard()), (json!("Refused"), 1));
}
