//! Prints the stored manifests of a deployment: those that clusters get now, or those of a revision.

use std::collections::BTreeMap;

use anyhow::bail;
use emco_controllers::sync::content::{HubContent, Source};
use emco_crds::deployment_intent_group::view::{Question, ViewOf};
use emco_engine::identity::{ClusterId, SetDigest};
use emco_engine::set::{Phase, SetManifest};
use emco_engine::shard::{Target, rows};
use emco_helm::yaml;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::args::deployments::{ManifestFormat, ManifestsArgs, PartArgs};
use super::diff::past;
use super::hub::{self, Hub};
use super::orphans::some;
use super::{Outcome, print, stored};

mod edits;

/// In the place of what is in a Secret.
const WITHHELD: &str = "(withheld)";
/// A copy of the whole object.
const LAST_APPLIED: &str = "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration";
/// Clusters that a comment names.
const NAMED: usize = 5;
/// Bytes of manifests that the operator hands on: several questions are answered at a time.
const MOST_HANDED: usize = 16 << 20;

/// Clusters by app, revision and set: equal sets are printed once.
type Sets = BTreeMap<(String, i64, SetDigest), Vec<String>>;

/// One manifest, as it is printed.
#[derive(Serialize, Deserialize)]
pub struct Printed {
    comments: String,
    manifest: Value,
    /// Values of a Secret are left out.
    withheld: bool,
}

/// `kubectl emco manifests`.
pub async fn run(args: ManifestsArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.named.hub).await?;
    let on_hub = hub.locate(&args.named.deployment, args.named.namespace.as_deref()).await?;
    hub.deployment(&on_hub.0, &on_hub.1).await?;
    if args.edits {
        stored::may_read(&hub, "manifests --edits", &on_hub.0, &on_hub.1).await?;
        let content = stored::content(&hub);
        let (_, targets) = targets(&hub, &content, &on_hub, args.revision).await?;
        sets(&on_hub, &args.part, args.revision, &targets)?;
        return edits::list(&hub, &content, (&on_hub.0, &on_hub.1), &args, &targets).await;
    }
    let question = Question {
        what: ViewOf::Manifests,
        clusters: args.part.cluster.clone(),
        apps: args.part.app.clone(),
        revision: args.revision,
        ..Question::default()
    };
    let printed: Vec<Printed> = match stored::by_operator(&hub, "manifests", &on_hub, question).await? {
        Some(_) if args.show_secrets => bail!(
            "--show-secrets is for administrators of the hub: the operator hands the values of Secrets to nobody"
        ),
        Some(handed) => handed,
        None => printed(&hub, &on_hub, &args.part, args.revision, args.show_secrets).await?,
    };
    let withheld = printed.iter().filter(|one| one.withheld).count();
    match args.output {
        ManifestFormat::Yaml => {
            let document = |one: &Printed| format!("{}{}", one.comments, yaml::from_json(&one.manifest));
            print(&printed.iter().map(document).collect::<String>())?;
        }
        ManifestFormat::Json => {
            let items: Vec<&Value> = printed.iter().map(|one| &one.manifest).collect();
            let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
            print(&(serde_json::to_string_pretty(&list)? + "\n"))?;
            if withheld > 0 {
                eprintln!("the values of {} are withheld: --show-secrets prints them", counted(withheld));
            }
        }
    }
    Ok(Outcome::AsWanted)
}

/// Reads the manifests of a part of a deployment.
pub async fn printed(
    hub: &Hub,
    on_hub: &(String, String),
    part: &PartArgs,
    revision: Option<i64>,
    secrets: bool,
) -> anyhow::Result<Vec<Printed>> {
    let content = stored::content(hub);
    let (hash, targets) = targets(hub, &content, on_hub, revision).await?;
    let sets = sets(on_hub, part, revision, &targets)?;
    let (mut printed, mut size) = (Vec::new(), 0);
    for ((app, revision, set), clusters) in &sets {
        let source = Source { namespace: on_hub.0.clone(), owner: hash.clone(), revision: *revision };
        let set = stored::set(&content, &source, set).await?;
        if hub.lender.is_some() {
            size += set.manifests.iter().map(|manifest| manifest.json.to_string().len()).sum::<usize>();
            if size > MOST_HANDED {
                let most = MOST_HANDED >> 20;
                bail!("the manifests have more than {most} MiB: ask about less, with --cluster and --app");
            }
        }
        for manifest in &set.manifests {
            let (json, withheld) = shown(&manifest.json, secrets);
            let comments = comments(app, *revision, clusters, manifest, withheld);
            printed.push(Printed { comments, manifest: json, withheld });
        }
    }
    Ok(printed)
}

/// The owner's hash, and what clusters get: now, or of a revision.
async fn targets(
    hub: &Hub,
    content: &HubContent,
    (namespace, name): &(String, String),
    revision: Option<i64>,
) -> anyhow::Result<(String, BTreeMap<ClusterId, Target>)> {
    let Some(number) = revision else { return present(hub, namespace, name).await };
    let targets = past::read(hub, content, namespace, name, number).await?;
    Ok((past::owner_hash(hub, namespace, name).await?, targets))
}

/// The sets of a part of a deployment, each with its clusters. An error where there are none.
fn sets(
    (namespace, name): &(String, String),
    part: &PartArgs,
    revision: Option<i64>,
    targets: &BTreeMap<ClusterId, Target>,
) -> anyhow::Result<Sets> {
    let mut sets = Sets::new();
    for (cluster, target) in targets {
        for (app, set) in &target.apps {
            if part.takes(app, cluster.as_str()) {
                let key = (app.clone(), target.revision, set.clone());
                sets.entry(key).or_default().push(cluster.to_string());
            }
        }
    }
    if sets.is_empty() {
        bail!("{}", nothing(revision, namespace, name, targets));
    }
    Ok(sets)
}

/// What clusters get now, by the owner's shards.
pub async fn present(
    hub: &Hub,
    namespace: &str,
    name: &str,
) -> anyhow::Result<(String, BTreeMap<ClusterId, Target>)> {
    let shards = hub.shards(namespace, name).await?;
    let Some(first) = shards.first() else {
        bail!("{namespace}/{name} has no manifests: nothing was planned for any cluster yet");
    };
    let hash = stored::owner_hash(first)?;
    let rows = shards.iter().flat_map(|shard| rows(&shard.spec, shard.status.as_ref()));
    Ok((hash, rows.filter_map(|row| Some((row.cluster, row.target?))).collect()))
}

/// Why nothing is selected, with what there is.
fn nothing(
    revision: Option<i64>,
    namespace: &str,
    name: &str,
    targets: &BTreeMap<ClusterId, Target>,
) -> String {
    let clusters: Vec<String> = targets.keys().map(ToString::to_string).collect();
    if clusters.is_empty() {
        return format!("{namespace}/{name} has no manifests: it is to have nothing on any cluster");
    }
    let mut apps: Vec<String> = targets.values().flat_map(|target| target.apps.keys().cloned()).collect();
    apps.sort();
    apps.dedup();
    let revision = revision.map_or_else(String::new, |number| format!(" in revision {number}"));
    format!(
        "{namespace}/{name} has no manifests of this app on this cluster{revision}: there are apps {} and clusters {}",
        some(&apps, NAMED),
        some(&clusters, NAMED)
    )
}

fn comments(app: &str, revision: i64, clusters: &[String], manifest: &SetManifest, hidden: bool) -> String {
    let mut text = format!("---\n# app {app}, revision {revision}, on {}\n", some(clusters, NAMED));
    if let Some(hook) = &manifest.hook {
        text.push_str(&format!("# hook: {}\n", hook.events.join(", ")));
    } else if manifest.phase == Phase::DeleteHook {
        text.push_str("# hook of the removal\n");
    }
    for edit in &manifest.edited_by {
        text.push_str(&format!("# {edit}\n"));
    }
    if manifest.crd_folder {
        text.push_str(
            "# of the chart's folder crds: made where it is absent, never changed, never removed\n",
        );
    } else if manifest.keep {
        text.push_str("# stays when the deployment is removed\n");
    }
    if hidden {
        text.push_str("# its values are withheld: --show-secrets prints them\n");
    }
    text
}

/// A manifest as it is printed, and whether something of it is withheld.
fn shown(manifest: &Value, secrets: bool) -> (Value, bool) {
    let mut manifest = manifest.clone();
    if secrets || manifest["kind"] != "Secret" || manifest["apiVersion"] != "v1" {
        return (manifest, false);
    }
    let mut hidden = false;
    if let Some(applied) = manifest.pointer_mut(LAST_APPLIED) {
        *applied = Value::from(WITHHELD);
        hidden = true;
    }
    for key in ["data", "stringData"] {
        let Some(values) = manifest.get_mut(key) else { continue };
        match values.as_object_mut() {
            Some(values) => {
                for value in values.values_mut() {
                    *value = Value::from(WITHHELD);
                    hidden = true;
                }
            }
            None => *values = Value::from(WITHHELD),
        }
    }
    (manifest, hidden)
}

fn counted(secrets: usize) -> String {
    if secrets == 1 { "1 Secret".to_owned() } else { format!("{secrets} Secrets") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_secrets_are_withheld_and_their_names_are_not() {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key"},
            "data": {"password": "aHVudGVyMg=="}, "stringData": {"user": "root"}});
        let (printed, hidden) = shown(&secret, false);
        assert!(hidden);
        assert_eq!(printed["data"], json!({"password": WITHHELD}));
        assert_eq!(printed["stringData"], json!({"user": WITHHELD}));
        assert_eq!(shown(&secret, true), (secret, false));
        let copied = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"annotations":
            {"kubectl.kubernetes.io/last-applied-configuration": "{\"data\": {\"a\": \"aHVudGVyMg==\"}}"}}});
        assert!(
            !shown(&copied, false).0.to_string().contains("aHVudGVyMg"),
            "a copy of it is one of its values"
        );
        let sealed = json!({"apiVersion": "bitnami.com/v1alpha1", "kind": "Secret", "data": {"a": "b"}});
        assert_eq!(shown(&sealed, false), (sealed, false));
    }
}
