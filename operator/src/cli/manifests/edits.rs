//! Lists which fields intents added, changed or left out, and the action of each, as stored with a revision. No value is printed.

use std::collections::{BTreeMap, BTreeSet};

use emco_controllers::sync::content::HubContent;
use emco_crds::names::generated_app;
use emco_engine::identity::ClusterId;
use emco_engine::set::provenance::{Became, Provenance};
use emco_engine::set::{Assigned, Assignment};
use emco_engine::shard::Target;
use emco_engine::text::counted;
use serde::Serialize;

use crate::cli::args::Format;
use crate::cli::args::deployments::{ManifestFormat, ManifestsArgs};
use crate::cli::diff::past;
use crate::cli::hub::Hub;
use crate::cli::orphans::some;
use crate::cli::output::{self, Table};
use crate::cli::{Outcome, print};

use super::NAMED;

/// What intents did to an app on some clusters.
#[derive(Debug, Serialize)]
struct Group {
    app: String,
    revision: i64,
    clusters: Vec<String>,
    objects: Vec<Edited>,
    /// Fields that are only counted.
    more: usize,
}

/// One object.
#[derive(Debug, Serialize)]
struct Edited {
    object: String,
    became: Became,
    fields: Vec<Line>,
}

/// One field; the empty pointer is the whole object.
#[derive(Debug, Serialize)]
struct Line {
    field: String,
    by: String,
}

/// `kubectl emco manifests --edits`.
pub async fn list(
    hub: &Hub,
    content: &HubContent,
    (namespace, name): (&str, &str),
    args: &ManifestsArgs,
    targets: &BTreeMap<ClusterId, Target>,
) -> anyhow::Result<Outcome> {
    let revisions: BTreeSet<i64> = targets.values().map(|target| target.revision).collect();
    let mut assignments = BTreeMap::new();
    for revision in revisions {
        assignments.insert(revision, past::assignment(hub, content, namespace, name, revision).await?);
    }
    let (groups, unknown) = groups(args, targets, &assignments);
    if args.output == ManifestFormat::Json {
        print(&output::machine(Some(Format::Json), &groups)?.unwrap_or_default())?;
    } else if !groups.is_empty() {
        print(&table(&groups))?;
    } else if unknown.is_empty() {
        print(&format!("no intent changes anything of {namespace}/{name} there\n"))?;
    }
    if !unknown.is_empty() {
        eprintln!(
            "not known of {}: stored by a version of EMCO that did not keep which fields are an intent's",
            some(&unknown, NAMED)
        );
    }
    Ok(Outcome::AsWanted)
}

/// What was done by app, revision and clusters on which the same was done; and apps of which it is not known.
fn groups(
    args: &ManifestsArgs,
    targets: &BTreeMap<ClusterId, Target>,
    assignments: &BTreeMap<i64, Assignment>,
) -> (Vec<Group>, Vec<String>) {
    let mut same: BTreeMap<(&str, i64, &Provenance), Vec<String>> = BTreeMap::new();
    let mut unknown = BTreeSet::new();
    for (cluster, target) in targets {
        let apps = assignments.get(&target.revision).and_then(|assignment| assignment.get(cluster));
        for app in target.apps.keys().filter(|app| args.part.takes(app, cluster.as_str())) {
            let cell: Option<&Assigned> = apps.and_then(|apps| apps.get(app));
            let by_intents = |cell: &Assigned| cell.edits.is_some() || generated_app::is(app);
            match cell.map(|cell| (cell.provenance.as_deref(), by_intents(cell))) {
                Some((Some(provenance), _)) if provenance.is_empty() => {}
                Some((Some(provenance), _)) => {
                    let key = (app.as_str(), target.revision, provenance);
                    same.entry(key).or_default().push(cluster.to_string());
                }
                Some((None, false)) => {}
                Some((None, true)) | None => {
                    unknown.insert(format!("app {app} on {cluster}"));
                }
            }
        }
    }
    let group = |((app, revision, provenance), clusters): ((&str, i64, &Provenance), Vec<String>)| Group {
        app: app.to_owned(),
        revision,
        clusters,
        objects: objects(provenance),
        more: provenance.more,
    };
    (same.into_iter().map(group).collect(), unknown.into_iter().collect())
}

fn objects(provenance: &Provenance) -> Vec<Edited> {
    let field = |(field, at): &(String, usize)| Line {
        field: field.clone(),
        by: provenance.actions.get(*at).cloned().unwrap_or_default(),
    };
    let all = provenance.objects.iter().map(|edited| Edited {
        object: edited.object.clone(),
        became: edited.became,
        fields: edited.fields.iter().map(field).collect(),
    });
    all.collect()
}

fn table(groups: &[Group]) -> String {
    let mut table = Table::new(&["APP", "REVISION", "CLUSTERS", "OBJECT", "FIELD", "BY"]);
    let mut more = Vec::new();
    for Group { app, revision, clusters, objects, more: left } in groups {
        let (on, revision) = (some(clusters, NAMED), revision.to_string());
        for object in objects {
            for Line { field, by } in &object.fields {
                let field = match (field.as_str(), object.became) {
                    ("", Became::Added) => "(added)",
                    ("", _) => "(left out)",
                    (field, _) => field,
                };
                let cells = [app.as_str(), &revision, &on, &object.object, field, by];
                table.row(cells.map(str::to_owned).to_vec());
            }
        }
        if *left > 0 {
            more.push(format!("app {app} on {on}: {} not listed\n", counted(*left, "more field")));
        }
    }
    table.text() + &more.concat()
}

#[cfg(test)]
mod tests {
    use emco_engine::set::provenance::EditedObject;

    use super::*;

    #[test]
    fn each_field_is_a_line_with_its_action() {
        let action = "GenericActionIntent banner, spec.actions[few]".to_owned();
        let edited = |object: &str, became, fields: &[&str]| EditedObject {
            object: object.to_owned(),
            became,
            fields: fields.iter().map(|field| ((*field).to_owned(), 0)).collect(),
        };
        let provenance = Provenance {
            actions: vec![action],
            objects: vec![
                edited("apps/Deployment/shop/web", Became::Changed, &["/spec/replicas"]),
                edited("ConfigMap/shop/note", Became::Added, &[""]),
                edited("ConfigMap/shop/old", Became::LeftOut, &[""]),
            ],
            more: 2,
            intents: BTreeMap::new(),
        };
        let group = Group {
            app: "web".to_owned(),
            revision: 3,
            clusters: vec!["acme/berlin".to_owned()],
            objects: objects(&provenance),
            more: provenance.more,
        };
        let text = table(&[group]);
        let cells = |line| str::split(line, "   ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
        let lines: Vec<Vec<&str>> = text.lines().map(cells).collect();
        let by = "GenericActionIntent banner, spec.actions[few]";
        assert_eq!(lines[1], ["web", "3", "acme/berlin", "apps/Deployment/shop/web", "/spec/replicas", by]);
        assert_eq!(lines[2][3..], ["ConfigMap/shop/note", "(added)", by]);
        assert_eq!(lines[3][3..], ["ConfigMap/shop/old", "(left out)", by]);
        assert_eq!(text.lines().last(), Some("app web on acme/berlin: 2 more fields not listed"));
    }
}
