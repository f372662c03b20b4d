//! Runs the tests of a deployment's charts on its clusters, as `helm test` does, with the rights of the user.
//!
//! The operator has no part in it: what a test makes carries a label of its own, and no label of an owner.

use std::collections::BTreeSet;

use anyhow::bail;
use futures::stream::{self, StreamExt as _};
use parking_lot::Mutex;

use crate::cli::args::Format;
use crate::cli::args::test::{NameFilter, TestArgs};
use crate::cli::hub::{self, Hub};
use crate::cli::orphans::some;
use crate::cli::output::{machine, printable};
use crate::cli::{Misused, Outcome, print, stored};

mod cluster;
mod find;
mod object;
mod policy;
mod report;

use find::OnCluster;
use report::{Answer, Problem, Tested};

/// Clusters that are tested at the same time.
const AT_ONCE: usize = 8;
/// Names that a message has.
const NAMED: usize = 8;

/// What all clusters of one call have in common.
struct Run<'a> {
    hub: &'a Hub,
    args: &'a TestArgs,
    /// `shop/till`
    said: String,
    /// Test objects that are there, for who interrupts.
    made: Mutex<BTreeSet<String>>,
    /// Whether tests are printed as they end.
    prints: bool,
}

impl Run<'_> {
    /// Says at once what keeps tests from being run; programs find it in the answer.
    fn warn(&self, problem: &Problem) {
        if self.prints {
            eprintln!("warning: {}", printable(&problem.to_string()));
        }
    }
}

/// `kubectl emco test`.
pub async fn run(args: TestArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.named.hub).await?;
    let (namespace, name) = hub.locate(&args.named.deployment, args.named.namespace.as_deref()).await?;
    let group = hub.deployment(&namespace, &name).await?;
    stored::may_read(&hub, "test", &namespace, &name).await?;
    let mut clusters = Box::pin(find::all(&hub, &group, &args.part)).await?;
    let said = format!("{namespace}/{name}");
    if args.account.edge_context.is_some() && clusters.len() > 1 {
        return Err(Misused("--edge-context is for one cluster: name it with --cluster".to_owned()).into());
    }
    choose(&mut clusters, &args.filter)?;
    let mut problems: Vec<Problem> = clusters.iter().flat_map(OnCluster::problems).collect();
    let prints = !matches!(args.output, Some(Format::Json | Format::Yaml));
    let run = Run { hub: &hub, args: &args, said, made: Mutex::default(), prints };
    for problem in &problems {
        run.warn(problem);
    }
    if problems.is_empty() && clusters.iter().all(|one| one.tests() == 0) && prints {
        print(&format!("{} has no tests\n", run.said))?;
        return Ok(Outcome::AsWanted);
    }
    let testing = async {
        let jobs = clusters.iter().filter(|one| one.tests() > 0).map(|one| Box::pin(cluster::run(&run, one)));
        stream::iter(jobs).buffered(AT_ONCE).collect::<Vec<_>>().await
    };
    let interrupted = tokio::signal::ctrl_c();
    let ended = tokio::select! {
        ended = testing => ended,
        Ok(()) = interrupted => {
            eprintln!("interrupted: {}", printable(&left(&run.made.lock())));
            return Ok(Outcome::NotAsWanted);
        }
    };
    let mut tests: Vec<Tested> = Vec::new();
    for one in ended {
        let (tested, failed) = one?;
        tests.extend(tested);
        problems.extend(failed);
    }
    let answer = Answer::of(&run.said, tests, problems);
    match machine(args.output, &answer)? {
        Some(text) => print(&text)?,
        None => print(&answer.summary())?,
    }
    Ok(if answer.passed { Outcome::AsWanted } else { Outcome::NotAsWanted })
}

/// Leaves out what the filters do not mean. A name that no test has is a mistake: nothing would be tested, and pass.
fn choose(clusters: &mut [OnCluster], filters: &[NameFilter]) -> anyhow::Result<()> {
    let names: BTreeSet<String> = clusters.iter().flat_map(OnCluster::names).collect();
    if let Some(unknown) = filters.iter().find(|filter| !names.contains(&filter.name)) {
        let known: Vec<String> = names.into_iter().collect();
        let known = if known.is_empty() { "none".to_owned() } else { some(&known, NAMED) };
        bail!("there is no test named {}: there are {known}", unknown.name);
    }
    for cluster in clusters {
        cluster.keep(|name| policy::is_meant(filters, name));
    }
    Ok(())
}

/// What an interrupted run says.
fn left(made: &BTreeSet<String>) -> String {
    let names: Vec<String> = made.iter().cloned().collect();
    match names.len() {
        0 => "no object of a test is left".to_owned(),
        1 => format!("1 object of a test stays as it is: {}", some(&names, NAMED)),
        many => format!("{many} objects of tests stay as they are: {}", some(&names, NAMED)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_interrupts_is_told_what_stays() {
        assert_eq!(left(&BTreeSet::new()), "no object of a test is left");
        let one = BTreeSet::from(["acme/a: Pod/shop/smoke".to_owned()]);
        assert_eq!(left(&one), "1 object of a test stays as it is: acme/a: Pod/shop/smoke");
    }
}
