//! Prints the clusters that a project may use, as the operator writes them down for its members, who may not read Clusters.

use anyhow::anyhow;
use emco_crds::names::label;
use emco_engine::cluster_maps::{self, KEY, Row, SLOTS};
use emco_engine::text::counted;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::core::SelectorExt as _;
use serde::Serialize;

use super::super::args::{ClustersArgs, Format};
use super::super::hub::{Hub, is_forbidden};
use super::super::output::{Table, machine};
use super::super::pulse::Pulse;
use super::super::{Outcome, print};
use super::{UNKNOWN, selector};

/// What is written down in a namespace.
pub enum Written {
    /// Something.
    Down(Granted),
    /// Nothing: no project is there, no cluster is granted to it, or the operator did not look since.
    Nothing,
    /// The user may not read it.
    Forbidden,
}

/// Clusters that a project may use.
#[derive(Debug, Default)]
pub struct Granted {
    rows: Vec<Row>,
    /// Sentences about what is missing.
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    #[serde(flatten)]
    pulse: Pulse,
    clusters: Vec<Shown>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    /// Reachable, Unreachable or Unknown, and whether it takes no new work.
    state: String,
    #[serde(flatten)]
    row: Row,
}

/// Reads the ConfigMaps of a project's namespace, by name: members may not list others.
pub async fn read(hub: &Hub, namespace: &str) -> anyhow::Result<Written> {
    let api = Api::<ConfigMap>::namespaced(hub.client.clone(), namespace);
    let (mut granted, mut found) = (Granted::default(), false);
    for slot in 0..SLOTS {
        let name = cluster_maps::name(slot);
        let map = match api.get_opt(&name).await {
            Ok(Some(map)) => map,
            Ok(None) => continue,
            Err(error) if is_forbidden(&error) => return Ok(Written::Forbidden),
            Err(error) => return Err(hub.sentence(&error, "read ConfigMap", &format!("{namespace}/{name}"))),
        };
        found |= granted.take(&map, &format!("ConfigMap {namespace}/{name}"))?;
    }
    granted.rows.sort_by(|a, b| (&a.provider, &a.name).cmp(&(&b.provider, &b.name)));
    Ok(if found { Written::Down(granted) } else { Written::Nothing })
}

impl Granted {
    /// The clusters, by provider and name.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Takes in one ConfigMap; whether it is one of the operator's.
    fn take(&mut self, map: &ConfigMap, named: &str) -> anyhow::Result<bool> {
        if !map.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(label::PROJECT)) {
            let sentence = format!(
                "{named} is not the operator's, and has the name of one that says which clusters there are: remove it, or give it \
                 another name"
            );
            self.warnings.push(sentence);
            return Ok(false);
        }
        let text = map.data.as_ref().and_then(|data| data.get(KEY)).map(String::as_str).unwrap_or_default();
        let document = cluster_maps::read(text).map_err(|why| anyhow!("{named} cannot be read: {why}"))?;
        if document.left_out > 0 {
            let more = counted(document.left_out, "cluster");
            let sentence =
                format!("{named} has no room for {more} of the project: fewer labels on Clusters make some");
            self.warnings.push(sentence);
        }
        self.rows.extend(document.clusters);
        Ok(true)
    }
}

/// Prints them.
pub fn answer(granted: Granted, pulse: Pulse, args: &ClustersArgs) -> anyhow::Result<Outcome> {
    let selector = args.selector.as_deref().map(selector::parse).transpose()?;
    let Granted { mut rows, mut warnings } = granted;
    rows.retain(|row| args.provider.as_ref().is_none_or(|provider| *provider == row.provider));
    let unread = rows.iter().filter(|row| row.labels_left_out).count();
    if unread > 0 {
        warnings.push(format!(
            "{} with too many labels to be shown: -l selects by none",
            counted(unread, "cluster")
        ));
    }
    if let Some(selector) = &selector {
        rows.retain(|row| selector.matches(&row.labels));
    }
    let trusted = pulse.is_trusted();
    let clusters: Vec<Shown> =
        rows.into_iter().map(|row| Shown { state: state(&row, trusted), row }).collect();
    let reached = trusted && clusters.iter().all(|cluster| cluster.row.reachable == "True");
    let listing = Listing { pulse, clusters, warnings };
    match machine(args.output, &listing)? {
        Some(text) => print(&text)?,
        None => show(&listing, args.output == Some(Format::Wide))?,
    }
    Ok(if reached { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

fn state(row: &Row, trusted: bool) -> String {
    use emco_crds::cluster::Scheduling;

    let state = match row.reachable.as_str() {
        "True" if trusted => "Reachable",
        "False" if trusted => "Unreachable",
        _ => UNKNOWN,
    };
    let scheduling = match row.scheduling {
        Scheduling::Enabled => "",
        Scheduling::Cordoned => ",Cordoned",
        Scheduling::Drained => ",Drained",
    };
    format!("{state}{scheduling}")
}

fn show(listing: &Listing, wide: bool) -> anyhow::Result<()> {
    let said = std::iter::once(&listing.pulse.message).filter(|message| !message.is_empty());
    for warning in said.chain(&listing.warnings) {
        eprintln!("warning: {warning}");
    }
    if listing.clusters.is_empty() {
        eprintln!("no clusters");
        return Ok(());
    }
    print(&table(&listing.clusters, wide))
}

fn table(clusters: &[Shown], wide: bool) -> String {
    let mut columns = vec!["PROVIDER", "NAME", "LEVEL", "STATE", "VERSION", "LABELS"];
    if wide {
        columns.push("SCHEDULING");
    }
    let mut table = Table::new(&columns);
    for Shown { state, row } in clusters {
        let labels: Vec<String> = row.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let mut cells = vec![
            row.provider.clone(),
            row.name.clone(),
            row.level.as_str().to_owned(),
            state.clone(),
            row.version.clone(),
            labels.join(","),
        ];
        if wide {
            cells.push(format!("{:?}", row.scheduling));
        }
        table.row(cells);
    }
    table.text()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn map(labels: &Value, text: &str) -> ConfigMap {
        serde_json::from_value(
            json!({"metadata": {"name": "emco-clusters-0", "labels": labels}, "data": {KEY: text}}),
        )
        .unwrap()
    }

    const TEXT: &str = r#"{"format":1,"leftOut":2,"clusters":[
{"labels":{"tier":"edge"},"level":"Standard","name":"berlin","provider":"acme","reachable":"True","scheduling":"Enabled"},
{"level":"Admin","name":"oslo","provider":"acme","reachable":"False","scheduling":"Cordoned","version":"v1.36.3"}]}"#;

    #[test]
    fn a_members_table_says_level_state_version_and_labels() {
        let mut granted = Granted::default();
        let ours = map(&json!({"emco.io/project": "shop"}), TEXT);
        assert!(granted.take(&ours, "ConfigMap shop/emco-clusters-0").unwrap());
        assert!(granted.warnings[0].contains("no room for 2 clusters"), "{:?}", granted.warnings);
        let shown = |trusted: bool| -> Vec<Shown> {
            granted.rows.iter().map(|row| Shown { state: state(row, trusted), row: row.clone() }).collect()
        };
        assert_eq!(
            table(&shown(true), false),
            "PROVIDER   NAME     LEVEL      STATE                  VERSION   LABELS\n\
             acme       berlin   Standard   Reachable              <none>    tier=edge\n\
             acme       oslo     Admin      Unreachable,Cordoned   v1.36.3   <none>\n"
        );
        assert_eq!(shown(false)[1].state, "Unknown,Cordoned");
    }

    #[test]
    fn a_map_that_is_not_the_operators_is_named_and_not_believed() {
        let mut granted = Granted::default();
        assert!(!granted.take(&map(&json!({}), TEXT), "ConfigMap shop/emco-clusters-0").unwrap());
        assert!(granted.rows.is_empty() && granted.warnings[0].contains("shop/emco-clusters-0"));
    }

    #[test]
    fn a_map_that_cannot_be_read_is_named() {
        let ours = map(&json!({"emco.io/project": "shop"}), "{}");
        let said = Granted::default().take(&ours, "ConfigMap shop/emco-clusters-0").unwrap_err().to_string();
        assert!(said.starts_with("ConfigMap shop/emco-clusters-0 cannot be read"), "{said}");
    }
}
