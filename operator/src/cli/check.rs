//! Looks at an installation as somebody would who is told that EMCO does not work: one line for each thing, with its cure.

use k8s_openapi::apimachinery::pkg::version::Info;
use serde::Serialize;

use super::args::CheckArgs;
use super::hub::{self, Hub};
use super::output::machine;
use super::pulse::{self, Life, Reading};
use super::{Outcome, print};

mod clusters;
mod cures;
mod installation;
mod kinds;
mod rights;

/// The oldest Kubernetes of a hub, as the charts say it.
const MINIMUM: (u32, u32) = (1, 33);
/// Clocks that differ by more make the Lease look dead, and certificates not valid yet.
const CLOCKS: i64 = 5;

/// How one thing is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, and something should be known.
    Warn,
    /// Something does not work.
    Fail,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub struct Finding {
    level: Level,
    what: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cure: Option<String>,
}

impl Finding {
    fn ok(what: &'static str, message: impl Into<String>) -> Self {
        Self { level: Level::Ok, what, message: message.into(), cure: None }
    }

    fn bad(level: Level, what: &'static str, message: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { level, what, message: message.into(), cure: Some(cure.into()) }
    }
}

#[derive(Serialize)]
struct Report {
    worst: Level,
    findings: Vec<Finding>,
}

/// `kubectl emco check`.
pub async fn run(args: CheckArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.hub).await?;
    let mut findings = vec![version(&hub).await?];
    findings.push(kinds::check(&hub).await);
    findings.push(rights::check(&hub).await);
    let reading = pulse::read(&hub).await;
    findings.push(operator(&hub, &reading));
    findings.push(clock(&reading));
    findings.extend(installation::check(&hub).await);
    findings.extend(clusters::check(&hub).await);
    let worst = findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok);
    let report = Report { worst, findings };
    match machine(args.output, &report)? {
        Some(text) => print(&text)?,
        None => print(&text(&report))?,
    }
    Ok(if worst == Level::Fail { Outcome::NotAsWanted } else { Outcome::AsWanted })
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    for Finding { level, what, message, cure } in &report.findings {
        let level = match level {
            Level::Ok => "ok",
            Level::Warn => "warn",
            Level::Fail => "FAIL",
        };
        text.push_str(&format!("{level:<5} {what:<12} {message}\n"));
        if let Some(cure) = cure {
            text.push_str(&format!("{:<18} -> {cure}\n", ""));
        }
    }
    text
}

/// The hub answers. Without an answer nothing else can be looked at.
async fn version(hub: &Hub) -> anyhow::Result<Finding> {
    let version = hub.client.apiserver_version().await;
    let version = version.map_err(|error| hub.sentence(&error, "read the version", "of Kubernetes"))?;
    Ok(judged_version(&version, &hub.url))
}

/// The hub is new enough.
fn judged_version(version: &Info, url: &str) -> Finding {
    let number = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0);
    let found = (number(&version.major), number(&version.minor));
    let message = format!("Kubernetes {} at {url}", version.git_version);
    if found >= MINIMUM {
        return Finding::ok("hub", message);
    }
    let (major, minor) = MINIMUM;
    let cure = format!("upgrade the hub to Kubernetes {major}.{minor} or later");
    Finding::bad(Level::Fail, "hub", message, cure)
}

/// An operator leads.
fn operator(hub: &Hub, Reading { pulse, .. }: &Reading) -> Finding {
    let namespace = &hub.operator_namespace;
    match pulse.operator {
        Life::Alive => Finding::ok("operator", format!("its Lease in namespace {namespace} is renewed")),
        Life::Unknown => Finding::bad(
            Level::Warn,
            "operator",
            &pulse.message,
            format!("look as somebody who may read Leases in namespace {namespace}"),
        ),
        Life::Silent => Finding::bad(
            Level::Fail,
            "operator",
            &pulse.message,
            format!(
                "kubectl -n {namespace} get pods, and their logs; is it in another namespace, name that with --operator-namespace; \
                 not installed: helm install emco charts/emco -n {namespace} --create-namespace"
            ),
        ),
    }
}

/// This machine's clock is the hub's.
fn clock(Reading { ahead, .. }: &Reading) -> Finding {
    let seconds = ahead.as_secs();
    if seconds.abs() <= CLOCKS {
        return Finding::ok("clock", "this machine's clock is the hub's");
    }
    let how = if seconds > 0 { "ahead of" } else { "behind" };
    Finding::bad(
        Level::Warn,
        "clock",
        format!("the hub's clock is {} s {how} this machine's", seconds.abs()),
        "set both by NTP: ages are wrong otherwise, and certificates may count as not yet valid",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_minimum_is_the_one_of_the_charts() {
        let chart = include_str!("../../../charts/emco/Chart.yaml");
        let (major, minor) = MINIMUM;
        assert!(chart.contains(&format!("kubeVersion: \">={major}.{minor}.0-0\"")), "{chart}");
    }

    #[test]
    fn a_hub_older_than_the_charts_want_fails_with_the_version_to_upgrade_to() {
        let of = |minor: &str| {
            let version = Info { major: "1".to_owned(), minor: minor.to_owned(), ..Info::default() };
            judged_version(&version, "https://hub")
        };
        // Managed clouds write a "+" behind it.
        for (minor, level) in
            [("32", Level::Fail), ("32+", Level::Fail), ("33", Level::Ok), ("33+", Level::Ok)]
        {
            assert_eq!(of(minor).level, level, "{minor}");
        }
        assert_eq!(of("32").cure.unwrap(), "upgrade the hub to Kubernetes 1.33 or later");
    }

    fn reading(ahead: i64) -> Reading {
        let pulse = pulse::Pulse::unreadable("it is so");
        Reading { pulse, ahead: jiff::SignedDuration::from_secs(ahead) }
    }

    #[test]
    fn clocks_that_differ_are_a_warning_with_the_side_that_is_ahead() {
        for (ahead, words) in [
            (42, "the hub's clock is 42 s ahead of this machine's"),
            (-6, "the hub's clock is 6 s behind this machine's"),
        ] {
            let finding = clock(&reading(ahead));
            assert_eq!((finding.level, finding.message.as_str()), (Level::Warn, words));
            assert!(finding.cure.unwrap().contains("NTP"));
        }
        assert_eq!(clock(&reading(5)).level, Level::Ok);
    }

    #[test]
    fn a_line_has_its_cure_below() {
        let findings = vec![
            Finding::ok("hub", "Kubernetes v1.36.3"),
            Finding::bad(Level::Fail, "clusters", "acme/oslo: Timeout", "look there"),
        ];
        let lines = [
            "ok    hub          Kubernetes v1.36.3",
            "FAIL  clusters     acme/oslo: Timeout",
            "                   -> look there",
        ];
        assert_eq!(text(&Report { worst: Level::Fail, findings }).lines().collect::<Vec<_>>(), lines);
    }
}
