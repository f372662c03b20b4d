//! What is made on a cluster: a namespace, a service account, a role and its binding, and a token.
//!
//! **Which token.** A bound token is asked for first: it ends by itself, and dies with its service account. Its length is the
//! cluster's to decide, though, and managed clouds cut it to a day or less. The operator renews what this program put on the hub, but not
//! what is in a Secret of Git, and not while it stands still: such a cluster would be lost the next morning. So where a cluster grants much less than was asked for, a token Secret is made
//! instead: without an end, until somebody deletes it. `--token` decides otherwise.

use std::time::Duration;

use anyhow::{Context as _, bail};
use emco_controllers::remote::kubeconfig::claims;
use emco_crds::names::{manager, object};
use emco_engine::identity::split_api_version;
use futures::TryStreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, ResourceExt as _};
use serde_json::{Value, json};

use super::confined::{Confined, left_over};
use super::reader;
use super::target::{Right, Target};
use crate::cli::args::TokenKind;
use crate::cli::role::show::Written;

/// Name of the service account, its role and its binding.
pub const ACCOUNT: &str = object::EDGE_ACCOUNT;
/// Name of the token Secret; the Secrets that bound tokens live and die with begin with it and a `-`.
pub const TOKEN: &str = "emco-hub-token";
/// A bound token that lives at least so long is taken, however much was asked for.
const LONG_ENOUGH: Duration = Duration::from_hours(30 * 24);
/// For the cluster to fill a token Secret.
const PATIENCE: Duration = Duration::from_secs(20);

/// What is made on a cluster.
pub struct Account {
    role: Option<String>,
    confined: Option<Confined>,
    reads: bool,
}

/// A token, and what is to be said of it.
pub struct Token {
    /// The token.
    pub text: String,
    /// Until when it holds.
    pub note: String,
    /// The Secret whose deletion ends it.
    pub secret: String,
}

/// Which token is wanted.
pub struct Wanted {
    /// The kind.
    pub kind: TokenKind,
    /// How long a bound one is asked for.
    pub duration: Duration,
    /// Whether a token Secret has to be a new one, too, so that the one before can be ended.
    pub fresh: bool,
}

impl Account {
    /// The account with a role of the cluster's own, or with what it has below level Admin; with neither it may do everything.
    pub const fn new(role: Option<String>, confined: Option<Confined>) -> Self {
        Self { role, confined, reads: false }
    }

    /// The account of a cluster that is written to through Git, with a role of the cluster's own or with one that only reads.
    pub const fn reader(role: Option<String>) -> Self {
        Self { role, confined: None, reads: true }
    }

    /// What it has below level Admin.
    pub const fn confined(&self) -> Option<&Confined> {
        self.confined.as_ref()
    }

    /// What the cluster has to let it do at least; nothing is known of a role of somebody's own.
    pub fn proof(&self) -> Option<Right> {
        match &self.confined {
            None if self.reads => Some(Right { group: "", resource: "namespaces", verb: "list" }),
            Some(_) => Some(Right { group: "", resource: "namespaces", verb: "create" }),
            None if self.role.is_none() => Some(Right { group: "*", resource: "*", verb: "*" }),
            None => None,
        }
    }

    /// The objects, in the order in which they are made, with what their rules are for.
    pub fn objects(&self) -> Vec<Written<'_>> {
        let labels = labels();
        let meta = json!({"name": ACCOUNT, "labels": labels});
        let mut objects = vec![
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": object::EDGE_NAMESPACE}}),
            json!({"apiVersion": "v1", "kind": "ServiceAccount",
                "metadata": {"name": ACCOUNT, "namespace": object::EDGE_NAMESPACE, "labels": labels},
                "automountServiceAccountToken": false}),
        ];
        if self.role.is_none() && self.reads {
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta,
                "rules": reader::rules(),
            }));
        } else if self.role.is_none() && self.confined.is_none() {
            objects.push(json!({
                "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": meta,
                "rules": [
                    // A chart of level Admin may hold any object, roles among them; less would refuse some chart.
                    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
                    {"nonResourceURLs": ["*"], "verbs": ["*"]},
                ],
            }));
        }
        let mut objects: Vec<Written<'_>> =
            objects.into_iter().map(|object| Written::new(object, &[])).collect();
        objects.extend(self.confined.iter().flat_map(Confined::objects));
        let role = self.role.as_deref().unwrap_or(ACCOUNT);
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": object::EDGE_NAMESPACE}],
        });
        objects.push(Written::new(binding, &[]));
        // To renew a token is to write.
        if self.role.is_some() && !self.reads {
            objects.extend(renewal().into_iter().map(|object| Written::new(object, &[])));
        }
        objects
    }

    /// Makes them, or makes them as they are to be, and removes what an account of another level had.
    pub async fn apply(&self, target: &Target) -> anyhow::Result<()> {
        for object in self.objects() {
            apply(target, &object.json()).await?;
        }
        for object in left_over(self.confined.is_some(), self.role.is_some() && !self.reads) {
            remove(target, &object).await?;
        }
        Ok(())
    }
}

/// The right of the account to have its own token renewed, and nobody else's.
fn renewal() -> [Value; 2] {
    let meta = json!({"name": ACCOUNT, "namespace": object::EDGE_NAMESPACE, "labels": labels()});
    [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta,
            "rules": [{
                "apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": [ACCOUNT], "verbs": ["create"],
            }],
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": meta,
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT},
            "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": object::EDGE_NAMESPACE}],
        }),
    ]
}

/// Gives that right where the account has a role of the cluster's own: registrations of earlier versions lack it.
pub async fn grant_renewal(target: &Target) -> anyhow::Result<()> {
    let bindings = Api::<ClusterRoleBinding>::all(target.client.clone());
    let binding = bindings.get_opt(ACCOUNT).await.map_err(|error| target.failed(&error))?;
    if binding.is_some_and(|binding| binding.role_ref.name != ACCOUNT) {
        for object in renewal() {
            apply(target, &object).await?;
        }
    }
    Ok(())
}

/// UID of the account that is there now.
pub async fn uid(target: &Target) -> anyhow::Result<String> {
    let accounts = Api::<ServiceAccount>::namespaced(target.client.clone(), object::EDGE_NAMESPACE);
    let account = accounts.get(ACCOUNT).await.map_err(|error| target.failed(&error))?;
    account.metadata.uid.context("the service account has no UID")
}

/// Whether a Secret of the cluster is one that a token of the account lives and dies with.
pub fn is_of_token(name: &str) -> bool {
    name.strip_prefix(TOKEN).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Gets a token for the account of this UID. A bound one is bound to a Secret of its own: deleting that ends this token alone.
pub async fn token(target: &Target, wanted: &Wanted, account: &str) -> anyhow::Result<Token> {
    if wanted.kind == TokenKind::Secret {
        return lasting(target, account, wanted.fresh).await;
    }
    let secrets = Api::<Secret>::namespaced(target.client.clone(), object::EDGE_NAMESPACE);
    let bound_to: Secret = serde_json::from_value(json!({
        "metadata": {"generateName": format!("{TOKEN}-"), "labels": labels()},
    }))?;
    let bound_to = secrets.create(&params(), &bound_to).await.map_err(|error| target.failed(&error))?;
    let name = bound_to.name_any();
    let found = bound(target, wanted, bound_to).await;
    if !matches!(found, Ok(Granted::Token(_))) {
        // What it would have been bound to is of no use.
        let _ = secrets.delete(&name, &DeleteParams::default()).await;
    }
    let granted = match found? {
        Granted::Token(token) => return Ok(token),
        Granted::Short(granted) => granted,
    };
    let Token { text, note, secret } = lasting(target, account, wanted.fresh).await?;
    let hours = granted.as_secs() / 3600;
    let note = format!(
        "the cluster grants bound tokens for {hours} h only, after which the hub would lose it: {note}"
    );
    Ok(Token { text, note, secret })
}

/// What a cluster answers to who asks for a bound token.
enum Granted {
    Token(Token),
    /// It would end so soon that it is no use.
    Short(Duration),
}

/// Asks for a token that is bound to a Secret.
async fn bound(target: &Target, wanted: &Wanted, to: Secret) -> anyhow::Result<Granted> {
    let accounts = Api::<ServiceAccount>::namespaced(target.client.clone(), object::EDGE_NAMESPACE);
    let seconds = i64::try_from(wanted.duration.as_secs()).unwrap_or(i64::MAX);
    let bound_object_ref = BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        name: to.metadata.name.clone(),
        uid: to.metadata.uid.clone(),
    };
    let request = TokenRequest {
        spec: TokenRequestSpec {
            expiration_seconds: Some(seconds),
            bound_object_ref: Some(bound_object_ref),
            ..Default::default()
        },
        ..Default::default()
    };
    let answer = accounts
        .create_token_request(ACCOUNT, &PostParams::default(), &request)
        .await
        .map_err(|error| target.failed(&error))?;
    let status = answer.status.context("the cluster answered no token")?;
    let until = status.expiration_timestamp.0;
    let granted = Duration::try_from(until.duration_since(Timestamp::now())).unwrap_or_default();
    if wanted.kind == TokenKind::Auto && is_short(granted, wanted.duration) {
        return Ok(Granted::Short(granted));
    }
    Ok(Granted::Token(Token {
        text: status.token,
        note: format!(
            "a bound token that ends {until:.0}; on the hub the operator renews it before, in Git you do"
        ),
        secret: to.name_any(),
    }))
}

fn params() -> PostParams {
    PostParams { field_manager: Some(manager::CLI.to_owned()), ..PostParams::default() }
}

pub(super) fn labels() -> Value {
    json!({"app.kubernetes.io/managed-by": "emco"})
}

/// Whether a bound token would end so soon that it is no use.
fn is_short(granted: Duration, asked: Duration) -> bool {
    granted < LONG_ENOUGH && granted < asked.mul_f64(0.9)
}

/// A token Secret, filled by the cluster's controllers.
async fn lasting(target: &Target, account: &str, fresh: bool) -> anyhow::Result<Token> {
    let mut secret = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {"name": TOKEN, "namespace": object::EDGE_NAMESPACE,
            "annotations": {"kubernetes.io/service-account.name": ACCOUNT}},
    });
    let name = if fresh {
        let made = json!({"generateName": format!("{TOKEN}-"), "labels": labels(),
            "annotations": {"kubernetes.io/service-account.name": ACCOUNT}});
        secret["metadata"] = made;
        let secrets = Api::<Secret>::namespaced(target.client.clone(), object::EDGE_NAMESPACE);
        let made = secrets.create(&params(), &serde_json::from_value(secret)?).await;
        made.map_err(|error| target.failed(&error))?.name_any()
    } else {
        apply(target, &secret).await?;
        TOKEN.to_owned()
    };
    let secrets = Api::<Secret>::namespaced(target.client.clone(), object::EDGE_NAMESPACE);
    let config = watcher::Config::default().fields(&format!("metadata.name={name}"));
    let events = watcher(secrets, config).applied_objects();
    let mut events = std::pin::pin!(events);
    let filled = async {
        while let Some(secret) = events.try_next().await? {
            let token =
                secret.data.as_ref().and_then(|data| String::from_utf8(data.get("token")?.0.clone()).ok());
            // One of an account that was deleted is about to go.
            if let Some(token) = token.filter(|token| claims::account(token).as_deref() == Some(account)) {
                return Ok::<_, watcher::Error>(Some(token));
            }
        }
        Ok(None)
    };
    let note = format!(
        "a token without an end; delete the Secret {name} in namespace {} to end it",
        object::EDGE_NAMESPACE
    );
    match tokio::time::timeout(PATIENCE, filled).await {
        Ok(Ok(Some(text))) => Ok(Token { text, note, secret: name }),
        Ok(Err(error)) => bail!("the token Secret {name} cannot be watched: {error}"),
        Ok(Ok(None)) | Err(_) => bail!(
            "the cluster did not put a token into the Secret {name} within {PATIENCE:?}: its controllers do not make such tokens; use \
             --token Bound"
        ),
    }
}

/// The kind of an object, where it is.
fn api(target: &Target, object: &Value) -> Api<DynamicObject> {
    let text = |pointer: &str| text(object, pointer);
    let (group, version) = split_api_version(text("/apiVersion"));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    match text("/metadata/namespace") {
        "" => Api::all_with(target.client.clone(), &resource),
        namespace => Api::namespaced_with(target.client.clone(), namespace, &resource),
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Removes an object that this program made; nothing where there is none, where the cluster does not know the kind, or where the person may
/// not see it, who then cannot have made it either.
async fn remove(target: &Target, object: &Value) -> anyhow::Result<()> {
    let api = api(target, object);
    let name = text(object, "/metadata/name");
    let found = match api.get_metadata_opt(name).await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => None,
        Err(error) => return Err(target.failed(&error)),
    };
    let ours = |fields: &ManagedFieldsEntry| fields.manager.as_deref() == Some(manager::CLI);
    if found.is_some_and(|found| found.managed_fields().iter().any(ours)) {
        api.delete(name, &DeleteParams::default()).await.map_err(|error| target.failed(&error))?;
    }
    Ok(())
}

pub(super) async fn apply(target: &Target, object: &Value) -> anyhow::Result<()> {
    let api = api(target, object);
    let params = PatchParams::apply(manager::CLI).force();
    match api.patch(text(object, "/metadata/name"), &params, &Patch::Apply(object)).await {
        Ok(_) => Ok(()),
        // A binding's role cannot be changed: it is made anew.
        Err(kube::Error::Api(status))
            if status.code == 422 && status.message.contains("cannot change roleRef") =>
        {
            bail!(
                "the ClusterRoleBinding {ACCOUNT} of the cluster binds another role, which cannot be changed: delete it there first \
                 (kubectl delete clusterrolebinding {ACCOUNT})"
            )
        }
        Err(error) => Err(target.failed(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_with_a_role_of_the_cluster_may_renew_its_own_token_alone() {
        let kinds = |role: Option<&str>| {
            let account = Account::new(role.map(str::to_owned), None);
            let objects = account.objects();
            let kind = |object: &Written<'_>| object.json()["kind"].as_str().unwrap().to_owned();
            objects.iter().map(kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(None), ["Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"]);
        assert_eq!(
            kinds(Some("edge")),
            ["Namespace", "ServiceAccount", "ClusterRoleBinding", "Role", "RoleBinding"]
        );
        let [role, _] = renewal();
        assert_eq!(
            role["rules"],
            json!([{"apiGroups": [""], "resources": ["serviceaccounts/token"], "resourceNames": ["emco-hub"], "verbs": ["create"]}])
        );
    }

    #[test]
    fn secrets_of_tokens_are_known_by_their_names() {
        for (name, is) in
            [("emco-hub-token", true), ("emco-hub-token-x7k2p", true), ("emco-hub-tokens", false)]
        {
            assert_eq!(is_of_token(name), is, "{name}");
        }
    }

    #[test]
    fn a_token_of_a_day_is_short_unless_no_more_was_asked_for() {
        let hours = Duration::from_hours;
        assert!(is_short(hours(24), hours(8760)));
        assert!(!is_short(hours(24), hours(24)));
        assert!(!is_short(hours(8759), hours(8760)));
        assert!(!is_short(hours(31 * 24), hours(87_600)));
    }
}
