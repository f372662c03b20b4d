//! Checks the installed operator: its version, the rights of its account, the addresses that clusters may have.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec};
use kube::api::{ListParams, PostParams};
use kube::{Api, ResourceExt as _};

use super::{Finding, Level};
use crate::cli::hub::{Hub, chain, is_forbidden};

const WHAT: &str = "installed";
const ACCOUNT: &str = "account";
/// Ranges that clusters may besides have, in the environment and as a flag.
const ADDRESSES: (&str, &str) = ("EMCO_ALLOW_EDGE_ADDRESS", "--allow-edge-address");

/// Looks at the Deployment of the operator.
pub async fn check(hub: &Hub) -> Vec<Finding> {
    let namespace = &hub.operator_namespace;
    let params = ListParams::default().labels("app.kubernetes.io/name=emco-operator");
    let api = Api::<Deployment>::namespaced(hub.client.clone(), namespace);
    match api.list(&params).await {
        Ok(found) => match found.items.first() {
            Some(deployment) => {
                let account = account(deployment, namespace);
                vec![installed(deployment), judged_account(&account, lacking(hub, &account).await)]
            }
            None => vec![absent(namespace)],
        },
        Err(error) if is_forbidden(&error) => {
            let message = format!("you may not list Deployments in namespace {namespace}");
            vec![Finding::bad(Level::Warn, WHAT, message, "look as an administrator of the hub")]
        }
        Err(error) => vec![Finding::bad(Level::Warn, WHAT, chain(&error), "look again")],
    }
}

fn absent(namespace: &str) -> Finding {
    Finding::bad(
        Level::Warn,
        WHAT,
        format!("no Deployment of the operator is in namespace {namespace}"),
        format!(
            "helm install emco charts/emco -n {namespace} --create-namespace; or it runs outside of the hub"
        ),
    )
}

fn pods(deployment: &Deployment) -> Option<&PodSpec> {
    deployment.spec.as_ref()?.template.spec.as_ref()
}

/// Version and address policy.
fn installed(deployment: &Deployment) -> Finding {
    let version = deployment.labels().get("app.kubernetes.io/version").map_or("unknown", String::as_str);
    let mut containers = pods(deployment).into_iter().flat_map(|pods| &pods.containers);
    let policy = match containers.find_map(allowed) {
        Some(ranges) => format!("clusters may besides be at {ranges}"),
        None => "clusters may not be at loopback or link-local addresses, nor the hub's".to_owned(),
    };
    let message = format!("operator {version}; {policy}");
    let own = env!("CARGO_PKG_VERSION");
    if version == own {
        return Finding::ok(WHAT, message);
    }
    let cure = format!("this program is {own}: use the one of the operator's version");
    Finding::bad(Level::Warn, WHAT, message, cure)
}

/// The ranges of a container; a flag wins over the environment.
fn allowed(container: &Container) -> Option<String> {
    let (variable, flag) = ADDRESSES;
    let mut words = container.command.iter().flatten().chain(container.args.iter().flatten());
    let mut ranges = Vec::new();
    while let Some(word) = words.next() {
        match word.strip_prefix(flag) {
            Some("") => ranges.extend(words.next().cloned()),
            Some(rest) => ranges.extend(rest.strip_prefix('=').map(str::to_owned)),
            None => {}
        }
    }
    if !ranges.is_empty() {
        return Some(ranges.join(","));
    }
    let found = container.env.iter().flatten().find(|one| one.name == variable)?;
    let value = found.value.clone().filter(|value| !value.is_empty());
    value.or_else(|| found.value_from.as_ref().map(|_| format!("what its variable {variable} is given from")))
}

/// The account of the operator, as the API server names it.
fn account(deployment: &Deployment, namespace: &str) -> String {
    let name = pods(deployment).and_then(|pods| pods.service_account_name.as_deref()).unwrap_or("default");
    format!("system:serviceaccount:{namespace}:{name}")
}

/// What the operator cannot begin without, and may not do.
async fn lacking(hub: &Hub, account: &str) -> kube::Result<Vec<String>> {
    let mut lacking = Vec::new();
    for (verb, group, resource) in
        [("watch", "emco.io", "clusters"), ("patch", "emco.io", "syncshards"), ("watch", "", "namespaces")]
    {
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            group: Some(group.to_owned()),
            resource: Some(resource.to_owned()),
            ..ResourceAttributes::default()
        };
        let groups = ["system:serviceaccounts".to_owned(), "system:authenticated".to_owned()];
        let spec = SubjectAccessReviewSpec {
            user: Some(account.to_owned()),
            groups: Some(groups.to_vec()),
            resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let api = Api::<SubjectAccessReview>::all(hub.client.clone());
        let answer = api.create(&PostParams::default(), &review).await?;
        if !answer.status.is_some_and(|status| status.allowed) {
            lacking.push(format!("{verb} {resource}"));
        }
    }
    Ok(lacking)
}

/// The operator's account may do its work.
fn judged_account(account: &str, lacking: kube::Result<Vec<String>>) -> Finding {
    match lacking {
        Ok(lacking) if lacking.is_empty() => {
            Finding::ok(ACCOUNT, format!("{account} may do the operator's work"))
        }
        Ok(lacking) => Finding::bad(
            Level::Fail,
            ACCOUNT,
            format!("{account} may not {}", lacking.join(", ")),
            "the ClusterRole emco-operator is not bound to it: helm upgrade emco charts/emco, with the values of the installation",
        ),
        Err(error) if is_forbidden(&error) => {
            let message = format!("you may not ask what {account} may do");
            Finding::bad(Level::Warn, ACCOUNT, message, "look as an administrator of the hub")
        }
        Err(error) => Finding::bad(Level::Warn, ACCOUNT, chain(&error), "look again"),
    }
}

#[cfg(test)]
mod tests {
    use kube::core::Status;
    use serde_json::{Value, json};

    use super::*;

    fn deployment(version: &str, container: &Value) -> Deployment {
        serde_json::from_value(json!({
            "metadata": {"name": "emco-operator", "labels": {"app.kubernetes.io/version": version}},
            "spec": {"selector": {}, "template": {"spec": {"serviceAccountName": "emco-operator", "containers": [container]}}},
        }))
        .unwrap()
    }

    fn policy(container: &Value) -> String {
        installed(&deployment(env!("CARGO_PKG_VERSION"), container)).message
    }

    #[test]
    fn ranges_of_clusters_are_read_from_flags_and_the_environment() {
        let named = |ranges: &str| {
            format!("operator {}; clusters may besides be at {ranges}", env!("CARGO_PKG_VERSION"))
        };
        let env = |more: Value| json!([{"name": "EMCO_ALLOW_EDGE_ADDRESS", "value": "10.0.0.0/8"}, more]);
        let other = json!({"name": "A", "value": "b"});
        assert_eq!(policy(&json!({"name": "o", "env": env(other.clone())})), named("10.0.0.0/8"));
        for args in [
            json!(["run", "--allow-edge-address", "127.0.0.0/8"]),
            json!(["run", "--log=debug", "--allow-edge-address=127.0.0.0/8"]),
        ] {
            assert_eq!(
                policy(&json!({"name": "o", "args": args, "env": env(other.clone())})),
                named("127.0.0.0/8")
            );
        }
        let twice = json!(["--allow-edge-address=a", "--allow-edge-address", "b"]);
        assert_eq!(policy(&json!({"name": "o", "args": twice})), named("a,b"));
        let from = json!([{"name": "EMCO_ALLOW_EDGE_ADDRESS", "valueFrom": {"configMapKeyRef": {"name": "a", "key": "b"}}}]);
        assert!(policy(&json!({"name": "o", "env": from})).contains("EMCO_ALLOW_EDGE_ADDRESS is given from"));
        assert!(policy(&json!({"name": "o", "args": ["run"]})).contains("may not be at loopback"));
    }

    #[test]
    fn an_operator_of_another_version_is_a_warning() {
        let finding = installed(&deployment("9.9.9", &json!({"name": "o"})));
        assert_eq!(finding.level, Level::Warn);
        assert!(finding.message.contains("operator 9.9.9"), "{}", finding.message);
        assert!(finding.cure.unwrap().contains(&format!("this program is {}", env!("CARGO_PKG_VERSION"))));
        assert_eq!(absent("emco-system").level, Level::Warn);
    }

    #[test]
    fn an_operator_without_its_rights_fails_the_check() {
        let name = account(&deployment("1", &json!({"name": "o"})), "emco-system");
        assert_eq!(name, "system:serviceaccount:emco-system:emco-operator");
        assert_eq!(judged_account(&name, Ok(Vec::new())).level, Level::Ok);
        let finding = judged_account(&name, Ok(vec!["watch clusters".to_owned()]));
        assert_eq!(finding.level, Level::Fail);
        assert!(finding.message.ends_with("may not watch clusters"), "{}", finding.message);
        let forbidden = Status::failure("no", "Forbidden").with_code(403).boxed();
        assert_eq!(judged_account(&name, Err(kube::Error::Api(forbidden))).level, Level::Warn);
    }
}
