//! Compares how NetworkPolicies are read with a second opinion, that of cyclonus: random policies, pods and ports.

use std::collections::BTreeMap;
use std::fmt;
use std::process::Stdio;

use anyhow::{Context as _, Result, ensure};
use emco_e2e::programs::{Program, Programs};
use emco_e2e::random::Random;
use emco_engine::traffic::proof::connection::{Connection, lets_through};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

/// Connections that are asked about of each list of policies.
const OF_EACH: usize = 10;
/// Differences that are shown in full.
const MOST_SHOWN: usize = 5;

const TYPES: [&[&str]; 3] = [&["Ingress"], &["Egress"], &["Ingress", "Egress"]];
const NAMESPACES: [&str; 3] = ["shop", "batch", "other"];
const KEYS: [&str; 2] = ["app", "tier"];
const VALUES: [&str; 3] = ["a", "b", "c"];
const PROTOCOLS: [&str; 3] = ["TCP", "UDP", "SCTP"];
const PORT_NAMES: [&str; 3] = ["http", "dns", ""];
const BLOCKS: [&str; 6] =
    ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "0.0.0.0/0", "192.168.0.0/16", "2001:db8::/32"];
const ADDRESSES: [&str; 5] = ["10.1.2.3", "10.1.9.9", "10.9.9.9", "192.168.1.1", "2001:db8::1"];

/// Policies, connections, and what the second opinion says of each.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    /// Policies.
    pub policies: Vec<Value>,
    /// Connections.
    pub connections: Vec<Connection>,
    /// Set for each that is let through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<bool>,
}

/// Findings of a comparison.
#[derive(Debug, Default)]
pub struct Compared {
    /// Connections that both let through.
    pub open: usize,
    /// Connections that neither does.
    pub closed: usize,
    /// All that was different.
    pub differences: Vec<String>,
}

impl Compared {
    /// An error where something was different, or where too little was compared to mean anything.
    pub fn agree(&self) -> Result<()> {
        let shown: Vec<&str> = self.differences.iter().take(MOST_SHOWN).map(String::as_str).collect();
        ensure!(
            shown.is_empty(),
            "{} connections differ, such as\n{}",
            self.differences.len(),
            shown.join("\n\n")
        );
        let least = (self.open + self.closed) / 10;
        ensure!(self.open > least && self.closed > least, "both should be common, but {self}");
        Ok(())
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { open, closed, differences } = self;
        write!(f, "both let {open} connections through and close {closed}, {} differ", differences.len())
    }
}

/// Compares so many random connections.
pub async fn compare(seed: u64, connections: usize) -> Result<Compared> {
    let cases = answered(seed, connections.div_ceil(OF_EACH)).await?;
    let mut compared = Compared::default();
    for case in cases {
        for (connection, theirs) in case.connections.iter().zip(&case.answers) {
            match (lets_through(&case.policies, connection), *theirs) {
                (true, true) => compared.open += 1,
                (false, false) => compared.closed += 1,
                (ours, theirs) => compared.differences.push(format!(
                    "ours {ours}, theirs {theirs}: {}\n{}",
                    serde_json::to_string(connection)?,
                    serde_json::to_string(&case.policies)?
                )),
            }
        }
    }
    Ok(compared)
}

/// So many random cases with the answers of the second opinion.
pub async fn answered(seed: u64, cases: usize) -> Result<Vec<Case>> {
    let mut random = Random(seed);
    let mut asked = Vec::with_capacity(cases);
    for _ in 0..cases {
        asked.push(case(&mut random)?);
    }
    ask(asked).await
}

/// Of EMCO's example `network_policy`: by its own list of two entries port 22 of the server is open to the client, by ours it is not. Both
/// opinions say so.
pub async fn example() -> Result<()> {
    let policy = |ports: Value| {
        json!({
            "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
            "metadata": {"name": "http-server", "namespace": "shop"},
            "spec": {
                "podSelector": {"matchLabels": {"app": "http-server"}}, "policyTypes": ["Ingress"],
                "ingress": [{"from": [{"podSelector": {"matchLabels": {"app": "http-client"}}}], "ports": ports}],
            },
        })
    };
    let pod = |ip: &str, app: &str| {
        let of_namespace = json!({"kubernetes.io/metadata.name": "shop"});
        json!({"ip": ip, "pod": {"namespace": "shop", "namespaceLabels": of_namespace, "labels": {"app": app}}})
    };
    let connection = |port: i64| {
        let (from, to) = (pod("10.1.2.3", "http-client"), pod("10.1.9.9", "http-server"));
        serde_json::from_value(json!({"from": from, "to": to, "protocol": "TCP", "port": port}))
    };
    let connections = vec![connection(22)?, connection(5000)?];
    let ours = policy(json!([{"protocol": "TCP", "port": 5000}]));
    let theirs = policy(json!([{"protocol": "TCP"}, {"port": 5000, "protocol": "TCP"}]));
    let case = |policy: Value| Case {
        policies: vec![policy],
        connections: connections.clone(),
        answers: Vec::new(),
    };
    let cases = ask(vec![case(ours), case(theirs)]).await?;
    for (case, wanted) in cases.iter().zip([[false, true], [true, true]]) {
        let judged: Vec<bool> =
            case.connections.iter().map(|connection| lets_through(&case.policies, connection)).collect();
        ensure!(
            case.answers == wanted && judged == wanted,
            "ours {judged:?}, theirs {:?}: {wanted:?}",
            case.answers
        );
    }
    Ok(())
}

/// Cases with the answers of the second opinion.
async fn ask(asked: Vec<Case>) -> Result<Vec<Case>> {
    let mut input = String::new();
    for case in &asked {
        input.push_str(&serde_json::to_string(case)?);
        input.push('\n');
    }
    let program = Programs::get(&[Program::PolicyChecks]).await?;
    let program = program.path(Program::PolicyChecks)?.to_owned();
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut stdin = child.stdin.take().context("no standard input")?;
    let write = tokio::spawn(async move { stdin.write_all(input.as_bytes()).await });
    let output = child.wait_with_output().await?;
    write.await??;
    ensure!(output.status.success(), "the second opinion ended with {}", output.status);
    let answers = String::from_utf8(output.stdout)?;
    let answers: Vec<Vec<bool>> = answers.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(answers.len() == asked.len(), "{} answers to {} questions", answers.len(), asked.len());
    let with = |(case, answers): (Case, Vec<bool>)| Case { answers, ..case };
    Ok(asked.into_iter().zip(answers).map(with).collect())
}

fn case(random: &mut Random) -> Result<Case> {
    let policies = (0..=random.below(3)).map(|n| policy(random, n)).collect();
    let connections =
        (0..OF_EACH).map(|_| serde_json::from_value(connection(random))).collect::<Result<_, _>>()?;
    Ok(Case { policies, connections, answers: Vec::new() })
}

fn labels(random: &mut Random) -> BTreeMap<&'static str, &'static str> {
    let mut labels = BTreeMap::new();
    for key in KEYS {
        if random.below(3) > 0 {
            labels.insert(key, *random.of(&VALUES));
        }
    }
    labels
}

fn selector(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({}),
        1 | 2 => {
            let (key, value) = (*random.of(&KEYS), *random.of(&VALUES));
            json!({"matchLabels": {key: value}})
        }
        _ => {
            let operator = *random.of(&["In", "NotIn", "Exists", "DoesNotExist"]);
            let key = *random.of(&KEYS);
            let mut need = json!({"key": key, "operator": operator});
            if operator == "In" || operator == "NotIn" {
                need["values"] = json!([random.of(&VALUES), random.of(&VALUES)]);
            }
            let mut needs = vec![need];
            if operator == "NotIn" {
                // Cyclonus takes an absent label for one that `NotIn` does not match; for Kubernetes it matches.
                needs.push(json!({"key": key, "operator": "Exists"}));
            }
            json!({"matchExpressions": needs})
        }
    }
}

fn namespaces(random: &mut Random) -> Value {
    match random.below(3) {
        0 => json!({}),
        1 => json!({"matchLabels": {"kubernetes.io/metadata.name": random.of(&NAMESPACES)}}),
        _ => json!({"matchLabels": {"team": random.of(&VALUES)}}),
    }
}

fn peer(random: &mut Random) -> Value {
    match random.below(4) {
        0 => json!({"podSelector": selector(random)}),
        1 => json!({"namespaceSelector": namespaces(random)}),
        2 => json!({"namespaceSelector": namespaces(random), "podSelector": selector(random)}),
        _ => match random.below(2) {
            0 => json!({"ipBlock": {"cidr": random.of(&BLOCKS)}}),
            _ => json!({"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}),
        },
    }
}

fn port(random: &mut Random) -> Value {
    let protocol = random.of(&PROTOCOLS);
    match random.below(4) {
        0 => json!({"protocol": protocol}),
        1 => json!({"protocol": protocol, "port": 80 + random.below(4)}),
        2 => json!({"protocol": protocol, "port": 80, "endPort": 80 + random.below(4)}),
        _ => json!({"protocol": protocol, "port": random.of(&["http", "dns"])}),
    }
}

fn rules(random: &mut Random, ends: &str) -> Vec<Value> {
    let rule = |random: &mut Random| {
        let mut rule = json!({});
        let peers: Vec<Value> = (0..random.below(3)).map(|_| peer(random)).collect();
        let ports: Vec<Value> = (0..random.below(3)).map(|_| port(random)).collect();
        if !peers.is_empty() {
            rule[ends] = json!(peers);
        }
        if !ports.is_empty() {
            rule["ports"] = json!(ports);
        }
        rule
    };
    (0..random.below(3)).map(|_| rule(random)).collect()
}

fn policy(random: &mut Random, number: u64) -> Value {
    let types = *random.of(&TYPES);
    let mut spec = json!({"podSelector": selector(random), "policyTypes": types});
    for (type_, field, ends) in [("Ingress", "ingress", "from"), ("Egress", "egress", "to")] {
        if types.contains(&type_) {
            spec[field] = json!(rules(random, ends));
        }
    }
    json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": format!("p{number}"), "namespace": random.of(&NAMESPACES)}, "spec": spec,
    })
}

fn endpoint(random: &mut Random) -> Value {
    let ip = random.of(&ADDRESSES);
    if random.below(5) == 0 {
        return json!({"ip": ip});
    }
    let namespace = *random.of(&NAMESPACES);
    let of_namespace = json!({"kubernetes.io/metadata.name": namespace, "team": if namespace == "shop" { "a" } else { "b" }});
    json!({"ip": ip, "pod": {"namespace": namespace, "namespaceLabels": of_namespace, "labels": labels(random)}})
}

fn connection(random: &mut Random) -> Value {
    json!({
        "from": endpoint(random), "to": endpoint(random), "protocol": random.of(&PROTOCOLS),
        "port": 79 + random.below(6), "portName": random.of(&PORT_NAMES),
    })
}
