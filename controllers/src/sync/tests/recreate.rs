//! Fields that cannot be changed: what is deleted and made again, and what never is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use emco_crds::State;
use emco_crds::deployment_intent_group::sync::{DriftPolicy, ImmutablePolicy};
use emco_engine::set::SetManifest;
use serde_json::{Value, json};

use super::deaths;
use super::rig::*;
use crate::api::{ApiError, ApiServer as _, ApiServerExt as _, Content, Method, Request};
use crate::memory::{Fault, MemoryServer};

const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
const CONFIG: &str = "/api/v1/namespaces/shop/configmaps/c";

/// A Deployment whose selector has this value.
fn selecting(value: &str) -> Value {
    let mut web = deployment("web", "nginx:1");
    web["spec"]["selector"]["matchLabels"]["tier"] = json!(value);
    web["spec"]["template"]["metadata"]["labels"]["tier"] = json!(value);
    web
}

fn claim(mode: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}}})
}

fn stateful(service: &str, when_deleted: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop"},
        "spec": {"serviceName": service, "replicas": 1, "selector": {"matchLabels": {"app": "db"}},
            "persistentVolumeClaimRetentionPolicy": {"whenDeleted": when_deleted},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "db"}]}}}})
}

async fn installed_of(policy: ImmutablePolicy, manifests: Vec<SetManifest>) -> Rig {
    let rig = Rig::new(&["a"]);
    rig.immutable(policy);
    rig.start().await;
    rig.target(&on("a", &[app_of("web", manifests)])).await;
    rig.until_complete("a").await;
    rig.edge("a").take_seen();
    rig
}

async fn installed(policy: ImmutablePolicy, object: Value) -> Rig {
    installed_of(policy, vec![manifest(config("c", "1"), None), manifest(object, None)]).await
}

async fn update(rig: &Rig, object: Value) {
    rig.target(&on("a", &[app("web", vec![config("c", "2"), object])])).await;
}

fn uid(rig: &Rig, path: &str) -> Value {
    rig.edge("a").object(path).map_or(Value::Null, |object| object["metadata"]["uid"].clone())
}

fn deletes(edge: &MemoryServer) -> Vec<String> {
    edge.writes().into_iter().filter(|write| write.method == Method::Delete).map(|write| write.path).collect()
}

#[tokio::test(start_paused = true)]
async fn a_field_that_cannot_be_changed_fails_and_names_recreate() {
    let rig = installed(ImmutablePolicy::Fail, selecting("one")).await;
    let before = uid(&rig, WEB);
    update(&rig, selecting("two")).await;
    let row = rig.until_reason("a", "ImmutableField").await;
    assert_eq!(row.state, State::UpdateFailed);
    let error = row.error.unwrap();
    assert_eq!(error.resource.as_deref(), Some("apps/Deployment/shop/web"));
    for part in ["spec.sync.immutableFields: Recreate", "take the change back", "spec.selector"] {
        assert!(error.message.contains(part), "{part}: {}", error.message);
    }
    assert_eq!((uid(&rig, WEB), deletes(&rig.edge("a"))), (before, vec![]));
    let live = rig.edge("a").object(CONFIG).unwrap();
    assert_eq!(live["data"]["value"], "2", "the other object is applied");
}

#[tokio::test(start_paused = true)]
async fn recreate_deletes_the_object_once_and_makes_it_again() {
    let rig = installed(ImmutablePolicy::Recreate, selecting("one")).await;
    let before = uid(&rig, WEB);
    update(&rig, selecting("two")).await;
    rig.until_complete("a").await;
    let live = rig.edge("a").object(WEB).unwrap();
    assert_eq!(live["spec"]["selector"]["matchLabels"]["tier"], "two");
    assert_ne!(live["metadata"]["uid"], before);
    assert_eq!(deletes(&rig.edge("a")), [WEB]);
    let applies =
        rig.edge("a").writes().iter().filter(|w| w.method == Method::Patch && w.path == WEB).count();
    assert_eq!(applies, 2, "one that is refused, and one that makes it");
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(deletes(&rig.edge("a")).len(), 1);
    assert_eq!(rig.row("a").unwrap().error, None);
}

#[tokio::test(start_paused = true)]
async fn an_edit_to_recreate_takes_effect_at_once() {
    let rig = installed(ImmutablePolicy::Fail, selecting("one")).await;
    update(&rig, selecting("two")).await;
    rig.until_reason("a", "ImmutableField").await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    let asked = tokio::time::Instant::now();
    rig.immutable(ImmutablePolicy::Recreate);
    rig.until_complete("a").await;
    assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_volume_claim_is_never_deleted_and_says_why() {
    for policy in [ImmutablePolicy::Fail, ImmutablePolicy::Recreate] {
        let rig = installed(policy, claim("ReadWriteOnce")).await;
        update(&rig, claim("ReadWriteMany")).await;
        let message = rig.until_reason("a", "ImmutableField").await.error.unwrap().message;
        assert!(
            message.contains("PersistentVolumeClaim is never made anew, for its data would be lost"),
            "{message}"
        );
        assert!(!message.contains("Recreate"), "it does not help: {message}");
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(deletes(&rig.edge("a")), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn what_its_chart_keeps_is_never_deleted() {
    let kept = |value: &str| {
        let mut kept = manifest(selecting(value), None);
        kept.keep = true;
        kept
    };
    let rig = installed_of(ImmutablePolicy::Recreate, vec![kept("one")]).await;
    rig.target(&on("a", &[app_of("web", vec![kept("two")])])).await;
    let message = rig.until_reason("a", "ImmutableField").await.error.unwrap().message;
    assert!(message.contains("outlives its deployment"), "{message}");
    assert_eq!(deletes(&rig.edge("a")), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_that_takes_its_claims_along_stays() {
    let rig = installed(ImmutablePolicy::Recreate, stateful("one", "Delete")).await;
    update(&rig, stateful("two", "Delete")).await;
    let message = rig.until_reason("a", "ImmutableField").await.error.unwrap().message;
    assert!(message.contains("whenDeleted: Delete"), "{message}");
    assert_eq!(deletes(&rig.edge("a")), Vec::<String>::new());
    // The change that the message asks for can be made, and then the other one.
    update(&rig, stateful("one", "Retain")).await;
    rig.until_complete("a").await;
    update(&rig, stateful("two", "Retain")).await;
    rig.until_complete("a").await;
    assert_eq!(deletes(&rig.edge("a")).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_would_be_refused_anew_is_not_deleted() {
    let rig = installed(ImmutablePolicy::Recreate, selecting("one")).await;
    rig.edge("a").faults(Some(Arc::new(|request, _| {
        let causes = [("spec.selector", "Invalid value: x: field is immutable"), ("spec.replicas", "Invalid value: -1: must be at least 0")];
        (request.method == Method::Patch && request.path.ends_with("/web")).then(|| {
            Fault::Refuse(ApiError::Status {
                code: 422,
                reason: "Invalid".to_owned(),
                message: "Deployment.apps \"web\" is invalid: [spec.selector: Invalid value: x: field is immutable, spec.replicas: Invalid value: -1: must be at least 0]".to_owned(),
                retry_after: None,
                causes: causes.map(|(field, cause)| (field.to_owned(), cause.to_owned())).to_vec(),
            })
        })
    })));
    update(&rig, selecting("two")).await;
    let message = rig.until_reason("a", "Invalid").await.error.unwrap().message;
    assert!(message.contains("not deleted") && message.contains("spec.replicas"), "{message}");
    assert_eq!(deletes(&rig.edge("a")), Vec::<String>::new());
}

/// What denies the change may deny the object anew, and says no field or its own.
#[tokio::test(start_paused = true)]
async fn an_object_whose_change_admission_denies_is_never_deleted() {
    let policy = "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: ";
    let webhook = "admission webhook \"w.example.com\" denied the request: ";
    for (from, says, field, reason) in [
        (policy, "image tags must be immutable: use digests", Some(""), "Invalid"),
        (policy, "tags are immutable", Some(""), "ImmutableField"),
        (webhook, "spec.selector: field is immutable", Some("spec.selector"), "ImmutableField"),
        (webhook, "field is immutable", None, "ImmutableField"),
    ] {
        let rig = installed(ImmutablePolicy::Recreate, selecting("one")).await;
        let causes: Vec<_> = field.map(|field| (field.to_owned(), says.to_owned())).into_iter().collect();
        let denial = ApiError::Status {
            code: 422,
            reason: "Invalid".to_owned(),
            message: format!("{from}{says}"),
            retry_after: None,
            causes,
        };
        rig.edge("a").faults(Some(Arc::new(move |request, _| {
            let denied = request.method == Method::Patch && request.path == WEB;
            denied.then(|| Fault::Refuse(denial.clone()))
        })));
        update(&rig, selecting("two")).await;
        let message = rig.until_reason("a", reason).await.error.unwrap().message;
        assert!(reason == "Invalid" || message.contains("never deleted"), "{message}");
        assert!(!message.contains("Recreate"), "it does not help: {message}");
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(deletes(&rig.edge("a")), Vec::<String>::new(), "{from}{says}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_with_our_label_and_none_of_our_fields_is_not_deleted() {
    let rig = installed(ImmutablePolicy::Recreate, selecting("one")).await;
    rig.crash().await;
    let copied = json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]);
    let request = Request::new(Method::Patch, WEB).body(Content::JsonPatch, &copied);
    rig.edge("a").send(request).await.unwrap();
    update(&rig, selecting("two")).await;
    rig.start().await;
    let message = rig.until_reason("a", "ImmutableField").await.error.unwrap().message;
    assert!(message.contains("may have copied its label"), "{message}");
    assert_eq!(deletes(&rig.edge("a")), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_edit_to_report_keeps_no_object_away_that_was_deleted() {
    let rig = installed(ImmutablePolicy::Recreate, selecting("one")).await;
    let (policy, gone) = (Arc::clone(&rig.policy), AtomicBool::new(false));
    rig.edge("a").faults(Some(Arc::new(move |request, _| {
        if request.path != CONFIG {
            return None;
        }
        if request.method == Method::Delete {
            gone.store(true, Ordering::Relaxed);
            *policy.drift.lock() = DriftPolicy::Report;
        }
        // As a server does once others have made it immutable.
        let refused = request.method == Method::Patch && !gone.load(Ordering::Relaxed);
        let says = "Forbidden: field is immutable when `immutable` is set";
        refused.then(|| {
            Fault::Refuse(ApiError::Status {
                code: 422,
                reason: "Invalid".to_owned(),
                message: format!("ConfigMap \"c\" is invalid: data: {says}"),
                retry_after: None,
                causes: vec![("data".to_owned(), says.to_owned())],
            })
        })
    })));
    rig.edge("a").put("kubectl-edit", &config("c", "theirs"));
    rig.until("it is deleted", |rig| deletes(&rig.edge("a")) == [CONFIG]).await;
    rig.until("it is made again", |rig| {
        rig.edge("a").object(CONFIG).is_some_and(|live| live["data"]["value"] == "1")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_go_is_named_with_its_finalizer() {
    let mut held = selecting("one");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let rig = installed(ImmutablePolicy::Recreate, held).await;
    update(&rig, selecting("two")).await;
    let error = rig.until_reason("a", "BlockedByPrune").await.error.unwrap();
    assert_eq!(error.resource.as_deref(), Some("apps/Deployment/shop/web"));
    assert!(error.message.contains("example.com/hold"), "{}", error.message);
    assert_eq!(deletes(&rig.edge("a")).len(), 1);
    rig.edge("a").merge(WEB, &json!({"metadata": {"finalizers": null}})).await.unwrap();
    rig.until_complete("a").await;
    rig.until("nothing is said any more", |rig| rig.row("a").is_some_and(|row| row.error.is_none())).await;
}

#[tokio::test(start_paused = true)]
async fn an_object_that_others_made_anew_meanwhile_is_not_deleted() {
    let rig = installed(ImmutablePolicy::Recreate, selecting("one")).await;
    let edge = rig.edge("a");
    let (inner, done) = (edge.clone(), AtomicBool::new(false));
    edge.faults(Some(Arc::new(move |request, _| {
        if request.method != Method::Delete || done.swap(true, Ordering::Relaxed) {
            return None;
        }
        inner.remove(WEB);
        inner.put("someone", &selecting("theirs"));
        let (reason, message) = (String::new(), "busy".to_owned());
        Some(Fault::Refuse(ApiError::Status {
            code: 503,
            reason,
            message,
            retry_after: None,
            causes: Vec::new(),
        }))
    })));
    update(&rig, selecting("two")).await;
    rig.until_reason("a", "NotOurs").await;
    assert_eq!(edge.object(WEB).unwrap()["spec"]["selector"]["matchLabels"]["tier"], "theirs");
}

/// The server's words about a Secret are withheld, but that a field cannot be changed.
#[tokio::test(start_paused = true)]
async fn a_secret_of_another_type_is_made_again() {
    let of = |kind: &str| {
        json!({"apiVersion": "v1", "kind": "Secret", "type": format!("example.com/{kind}"),
            "metadata": {"name": "key", "namespace": "shop"}, "data": {"key": "eA=="}})
    };
    let rig = installed(ImmutablePolicy::Recreate, of("one")).await;
    update(&rig, of("two")).await;
    rig.until_complete("a").await;
    let path = "/api/v1/namespaces/shop/secrets/key";
    assert_eq!(rig.edge("a").object(path).unwrap()["type"], "example.com/two");
    assert_eq!(deletes(&rig.edge("a")), [path]);
}

#[tokio::test(start_paused = true)]
async fn a_job_with_another_template_runs_again_and_only_once() {
    let of = |image: &str| {
        let mut job = job("load");
        job["spec"]["ttlSecondsAfterFinished"] = json!(60);
        job["spec"]["template"]["spec"]["containers"][0]["image"] = json!(image);
        job
    };
    let rig = installed(ImmutablePolicy::Recreate, of("one")).await;
    update(&rig, of("two")).await;
    rig.until_complete("a").await;
    let path = "/apis/batch/v1/namespaces/shop/jobs/load";
    let live = rig.edge("a").object(path).unwrap();
    assert_eq!(live["spec"]["template"]["spec"]["containers"][0]["image"], "two");
    // The cluster removes it when it ended: it was carried out.
    rig.edge("a").remove(path);
    rig.edge("a").take_seen();
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(rig.edge("a").writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_label_others_took_off_is_not_deleted() {
    let rig = installed(ImmutablePolicy::Recreate, selecting("one")).await;
    rig.crash().await;
    let off = json!({"metadata": {"labels": null}});
    rig.edge("a").merge(WEB, &off).await.unwrap();
    update(&rig, selecting("two")).await;
    rig.start().await;
    let message = rig.until_reason("a", "ImmutableField").await.error.unwrap().message;
    assert!(message.contains("took EMCO's label off"), "{message}");
    assert_eq!(deletes(&rig.edge("a")), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_crash_at_any_write_of_a_recreation_ends_exactly() {
    let undisturbed = installed(ImmutablePolicy::Recreate, selecting("one")).await;
    update(&undisturbed, selecting("two")).await;
    undisturbed.until_complete("a").await;
    // The other object, the refused apply, the deletion, the apply; a status for each state between.
    for death in deaths::all(5, 5) {
        let rig = installed(ImmutablePolicy::Recreate, selecting("one")).await;
        let story = async {
            update(&rig, selecting("two")).await;
            rig.until_complete("a").await;
        };
        death.strikes(&rig, story).await;
        rig.until_complete("a").await;
        rig.until("nothing is said any more", |rig| rig.row("a").is_some_and(|row| row.error.is_none()))
            .await;
        assert_eq!(deaths::end(&rig), deaths::end(&undisturbed), "{death:?}");
        assert_eq!(deletes(&rig.edge("a")).len(), 1, "{death:?}");
        rig.target(&nowhere()).await;
        rig.until_complete("a").await;
        assert!(rig.ours("a").is_empty());
    }
}
