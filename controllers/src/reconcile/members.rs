//! Gives the members of a project their roles: one `RoleBinding` in its namespace for each role that has members.
//!
//! A binding is the project's where its label says so. One of the same name without the label stays as it is.

use emco_crds::Project;
use emco_crds::names::label;
use emco_crds::project::{MemberRole, Subject, SubjectKind};
use emco_engine::path::ApiPath;
use k8s_openapi::api::rbac::v1::{RoleBinding, RoleRef, Subject as Bound};
use kube::Resource;
use kube::api::ObjectMeta;
use serde_json::json;

use crate::api::{ApiError, ApiResult, ApiServerExt};
use crate::object::meta;
use crate::reconcile::context::Context;
use crate::tenancy::owned_namespace::{self, Refused};

const GROUP: &str = "rbac.authorization.k8s.io";

fn collection(namespace: &str) -> ApiPath {
    ApiPath::new("/apis/rbac.authorization.k8s.io/v1/namespaces").then(namespace).then("rolebindings")
}

/// Brings the bindings to what the project says. All of them are tried; the refusal is the first.
pub async fn ensure(ctx: &Context, project: &Project, namespace: &str) -> ApiResult<Result<(), Refused>> {
    let mut verdict = Ok(());
    if owned_namespace::ends(ctx, namespace) {
        return Ok(verdict);
    }
    for (role, store) in MemberRole::ALL.into_iter().zip(&ctx.stores.members) {
        let shown = store.named(namespace, role.binding());
        let done = match wanted(project, namespace, role) {
            Some(wanted) => keep(ctx, role, &wanted, shown.as_deref()).await,
            None => match shown.filter(|shown| is_of(shown, meta::name(project))) {
                Some(shown) => take(ctx, namespace, &shown).await.map(Ok),
                None => Ok(Ok(())),
            },
        };
        let done = match done {
            Err(error) if cannot_be_made(&error) => Err(refused(namespace, role, &error)),
            other => other?,
        };
        verdict = verdict.and(done);
    }
    Ok(verdict)
}

/// Takes the bindings away, as the hub has them now: the namespace may stay when the project goes.
pub async fn release(ctx: &Context, project: &Project, namespace: &str) -> ApiResult<()> {
    for role in MemberRole::ALL {
        let live = ctx.hub().get_as::<RoleBinding>(collection(namespace).then(role.binding())).await?;
        if let Some(live) = live.filter(|live| is_of(live, meta::name(project))) {
            take(ctx, namespace, &live).await?;
        }
    }
    Ok(())
}

fn is_of(binding: &RoleBinding, project: &str) -> bool {
    let labels = binding.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(label::PROJECT)).is_some_and(|name| name == project)
}

/// The binding of a role; `None` where nobody has it. Who is named twice is bound once.
fn wanted(project: &Project, namespace: &str, role: MemberRole) -> Option<RoleBinding> {
    let mut subjects = Vec::new();
    for subject in project.spec.members.iter().filter(|member| member.role == role).flat_map(|m| &m.subjects)
    {
        let bound = bound(subject, namespace);
        if !subjects.contains(&bound) {
            subjects.push(bound);
        }
    }
    let metadata = ObjectMeta {
        name: Some(role.binding().to_owned()),
        namespace: Some(namespace.to_owned()),
        labels: Some([(label::PROJECT.to_owned(), meta::name(project).to_owned())].into()),
        ..ObjectMeta::default()
    };
    let role_ref = RoleRef {
        api_group: GROUP.to_owned(),
        kind: "ClusterRole".to_owned(),
        name: role.cluster_role().to_owned(),
    };
    (!subjects.is_empty()).then_some(RoleBinding { metadata, role_ref, subjects: Some(subjects) })
}

/// As the API server stores it.
fn bound(subject: &Subject, namespace: &str) -> Bound {
    let account = subject.kind == SubjectKind::ServiceAccount;
    let within = subject.namespace.as_deref().unwrap_or(namespace);
    Bound {
        api_group: (!account).then(|| GROUP.to_owned()),
        kind: match subject.kind {
            SubjectKind::User => "User",
            SubjectKind::Group => "Group",
            SubjectKind::ServiceAccount => "ServiceAccount",
        }
        .to_owned(),
        name: subject.name.clone(),
        namespace: account.then(|| within.to_owned()),
    }
}

/// Makes a binding, or brings the one that is there to what it should say.
async fn keep(
    ctx: &Context,
    role: MemberRole,
    wanted: &RoleBinding,
    shown: Option<&RoleBinding>,
) -> ApiResult<Result<(), Refused>> {
    if let Some(shown) = shown {
        return adjust(ctx, role, wanted, shown).await;
    }
    match make(ctx, wanted).await {
        // The watch is behind, or another client was first.
        Err(error) if error.already_exists() => {
            let path = collection(meta::namespace(wanted)).then(role.binding());
            match ctx.hub().get_as::<RoleBinding>(path).await? {
                Some(live) => adjust(ctx, role, wanted, &live).await,
                None => Err(error),
            }
        }
        other => other.map(Ok),
    }
}

async fn make(ctx: &Context, wanted: &RoleBinding) -> ApiResult<()> {
    let object = json!({
        "apiVersion": RoleBinding::api_version(&()), "kind": RoleBinding::kind(&()),
        "metadata": wanted.metadata, "roleRef": wanted.role_ref, "subjects": wanted.subjects,
    });
    ctx.hub().create(collection(meta::namespace(wanted)), &object).await.map(drop)
}

async fn adjust(
    ctx: &Context,
    role: MemberRole,
    wanted: &RoleBinding,
    live: &RoleBinding,
) -> ApiResult<Result<(), Refused>> {
    let namespace = meta::namespace(wanted);
    let project = wanted.metadata.labels.as_ref().and_then(|labels| labels.get(label::PROJECT));
    let project = project.map(String::as_str).unwrap_or_default();
    if !is_of(live, project) {
        return Ok(Err(not_ours(namespace, role, project)));
    }
    // One that goes is made again once it is gone.
    if meta::deleting(live) || (live.role_ref == wanted.role_ref && live.subjects == wanted.subjects) {
        return Ok(Ok(()));
    }
    tracing::info!(
        namespace,
        binding = role.binding(),
        "a RoleBinding of members says something else: it is set"
    );
    // What a binding binds cannot be changed.
    if live.role_ref != wanted.role_ref {
        take(ctx, namespace, live).await?;
        return make(ctx, wanted).await.map(Ok);
    }
    let patch = json!({
        "metadata": {"resourceVersion": live.metadata.resource_version}, "subjects": wanted.subjects,
    });
    ctx.hub().merge(collection(namespace).then(role.binding()), &patch).await.map(|_| Ok(()))
}

async fn take(ctx: &Context, namespace: &str, binding: &RoleBinding) -> ApiResult<()> {
    let path = collection(namespace).then(meta::name(binding));
    ctx.hub().delete(path, Some(meta::uid(binding)), None).await.map(drop)
}

/// Whether the hub refuses the role itself: we may not bind it, or there is none of that name.
fn cannot_be_made(error: &ApiError) -> bool {
    let ends = error.to_string().contains("because it is being terminated");
    matches!(error.code(), 403 | 404) && !ends
}

fn not_ours(namespace: &str, role: MemberRole, project: &str) -> Refused {
    let name = role.binding();
    Refused {
        reason: "MembersNotBound",
        message: format!(
            "members with role {} have no rights: RoleBinding {namespace}/{name} exists and does not say that it is for \
             Project {project}: kubectl delete rolebinding -n {namespace} {name}, or kubectl label rolebinding \
             -n {namespace} {name} {}={project}, and it gets the subjects of spec.members",
            role.as_str(),
            label::PROJECT
        ),
    }
}

fn refused(namespace: &str, role: MemberRole, error: &ApiError) -> Refused {
    Refused {
        reason: "MembersNotBound",
        message: format!(
            "members with role {} have no rights: RoleBinding {namespace}/{} cannot be made: {error}: install EMCO's chart \
             with userRoles.enabled=true, which has ClusterRole {} and lets the operator bind it",
            role.as_str(),
            role.binding(),
            role.cluster_role()
        ),
    }
}
