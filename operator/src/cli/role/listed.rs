//! Prints the permissions that a logical cloud needs for a deployment, with the level that takes them.

use anyhow::bail;
use emco_crds::logical_cloud::Permission;
use emco_engine::role::Listed;
use emco_helm::yaml;
use serde_json::{Value, json};

use crate::cli::args::deployments::ManifestFormat;
use crate::cli::args::role::RoleArgs;
use crate::cli::hub::{self, Hub};
use crate::cli::orphans::some;
use crate::cli::plan::files::needs;
use crate::cli::print;

/// Permissions that a logical cloud takes.
const MOST: usize = 16;
/// Clusters that the heading names.
const NAMED: usize = 5;

/// `kubectl emco role --permissions`.
pub async fn run(args: &RoleArgs) -> anyhow::Result<()> {
    let Some(deployment) = &args.deployment else {
        bail!("--permissions is for one deployment: name it");
    };
    let hub = hub::connect(&args.hub).await?;
    let (namespace, name) = hub.locate(deployment, args.namespace.as_deref()).await?;
    let (heading, listed) = Box::pin(listed(&hub, &namespace, &name)).await?;
    match args.output {
        ManifestFormat::Yaml => print(&(heading + &yaml::from_json(&as_spec(&listed)))),
        ManifestFormat::Json => print(&(serde_json::to_string_pretty(&as_spec(&listed))? + "\n")),
    }
}

async fn listed(hub: &Hub, namespace: &str, name: &str) -> anyhow::Result<(String, Listed)> {
    let of = format!("{namespace}/{name}");
    let needs = Box::pin(needs::of(hub, namespace, name)).await?;
    if let Some(refusal) = needs.refusal {
        bail!("{of} cannot be planned, whatever its logical cloud allows: {}: {refusal}", refusal.reason);
    }
    let Some(cloud) = needs.cloud.filter(|_| !needs.clusters.is_empty()) else {
        bail!("{of} is placed on no cluster that the operator has reached: what it needs is not known yet");
    };
    let listed = Listed::of(&needs.rights, &cloud.namespace, needs.gives_away);
    if listed.permissions.len() > MOST {
        bail!(
            "{of} needs {} permissions, and a logical cloud takes {MOST}: divide its apps among several logical clouds, or give it one \
             permission with derived: true",
            listed.permissions.len()
        );
    }
    let clusters: Vec<String> = needs.clusters.iter().map(ToString::to_string).collect();
    Ok((heading(&of, &some(&clusters, NAMED), (&cloud.name, &cloud.level), &listed), listed))
}

/// Comments above the permissions.
fn heading(of: &str, clusters: &str, (cloud, level): (&str, &str), listed: &Listed) -> String {
    let wanted = listed.level.as_str();
    let next = if level == wanted {
        format!("For spec of logical cloud {cloud}, whose other deployments need theirs, too.")
    } else {
        format!(
            "Logical cloud {cloud} has level {level}, and no level can be changed: for spec of a new one, for a grant with at least \
             maxLevel: {wanted}."
        )
    };
    let derived = listed.permissions.iter().any(|one| one.derived);
    let paths =
        if derived { "# Derived, for a rule names paths, which no permission can list.\n" } else { "" };
    format!("# What {of} needs of its logical cloud on {clusters}.\n# {next}\n{paths}")
}

/// The fields of a `LogicalCloud`'s spec.
fn as_spec(Listed { level, permissions }: &Listed) -> Value {
    let permissions: Vec<Value> = permissions.iter().map(written).collect();
    json!({"level": level.as_str(), "permissions": permissions})
}

fn written(permission: &Permission) -> Value {
    serde_json::to_value(permission).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use emco_crds::LogicalCloudSpec;
    use emco_crds::fields::Level;
    use emco_crds::logical_cloud::{PermissionScope, PolicyRule};

    use super::*;

    fn listed(level: Level) -> Listed {
        let one = |name: &str, resource: &str| Permission {
            name: name.to_owned(),
            rules: Some(vec![PolicyRule {
                api_groups: vec!["scheduling.k8s.io".to_owned()],
                resources: vec![resource.to_owned()],
                verbs: vec!["create".to_owned()],
                resource_names: Vec::new(),
            }]),
            ..Permission::default()
        };
        let scope = Some(PermissionScope::Cluster);
        let cluster = Permission { scope, ..one("cluster", "priorityclasses") };
        Listed { level, permissions: vec![one("own", "things"), cluster] }
    }

    #[test]
    fn permissions_are_written_as_the_spec_of_a_logical_cloud_has_them() {
        let text = yaml::from_json(&as_spec(&listed(Level::Privileged)));
        let read = yaml::to_json(text.as_bytes()).unwrap();
        let read: LogicalCloudSpec = serde_json::from_value(read).unwrap();
        let wanted = listed(Level::Privileged);
        assert_eq!((read.level, read.permissions), (wanted.level, wanted.permissions));
        assert!(text.starts_with("level: Privileged\npermissions:\n"), "{text}");
    }

    #[test]
    fn a_level_that_does_not_fit_takes_a_new_logical_cloud() {
        let of = |level: &str| heading("shop/till", "acme/a", ("default", level), &listed(Level::Privileged));
        let said = of("Standard");
        assert!(
            said.contains("Logical cloud default has level Standard, and no level can be changed"),
            "{said}"
        );
        assert!(said.lines().all(|line| line.starts_with("# ")), "{said}");
        assert!(of("Privileged").contains("For spec of logical cloud default"));
    }
}
