//! Runs the tests of one cluster, app by app and one after the other.

use std::time::Duration;

use emco_engine::set::SetManifest;
use tokio::time::Instant;

use super::find::{AppTests, OnCluster};
use super::object::TestObject;
use super::report::{Phase, Problem, Tested};
use super::{Run, policy};
use crate::cli::diff::edge::{Edge, Kinds};
use crate::cli::on_edge::account;
use crate::cli::print;

/// For the first answers of a cluster.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs all tests that are meant there. An error is one of this program's own output.
pub(super) async fn run(run: &Run<'_>, on: &OnCluster) -> anyhow::Result<(Vec<Tested>, Vec<Problem>)> {
    let opened = account::open(run.hub, &on.id, on.uid.as_deref(), &run.args.account);
    let edge = match tokio::time::timeout(PATIENCE, Box::pin(opened)).await {
        Ok(Ok(account)) => Edge::of(account.client, on.hash.clone()),
        Ok(Err(error)) => return Ok(not_run(run, on, &format!("{error:#}"))),
        Err(_) => {
            let why = format!("the cluster does not answer within {} s", PATIENCE.as_secs());
            return Ok(not_run(run, on, &why));
        }
    };
    let mut session =
        Session { run, on, edge, kinds: Kinds::new(), tested: Vec::new(), problems: Vec::new() };
    for app in &on.apps {
        session.app(app).await?;
    }
    Ok((session.tested, session.problems))
}

/// What a cluster that cannot be asked has: its tests count as not run.
fn not_run(run: &Run<'_>, on: &OnCluster, why: &str) -> (Vec<Tested>, Vec<Problem>) {
    let problem = Problem::new(on.id.as_str(), None, why);
    run.warn(&problem);
    let tests = on.apps.iter().flat_map(|app| app.tests.iter().map(move |test| skipped(on, app, test, why)));
    (tests.collect(), vec![problem])
}

fn skipped(on: &OnCluster, app: &AppTests, test: &SetManifest, why: &str) -> Tested {
    Tested {
        app: app.app.clone(),
        cluster: on.id.to_string(),
        revision: app.revision,
        test: test.identity().to_string(),
        phase: Phase::NotRun,
        seconds: 0,
        message: why.to_owned(),
        logs: Vec::new(),
    }
}

/// The run on one cluster.
struct Session<'a> {
    run: &'a Run<'a>,
    on: &'a OnCluster,
    edge: Edge,
    kinds: Kinds,
    tested: Vec<Tested>,
    problems: Vec<Problem>,
}

impl Session<'_> {
    /// Runs the tests of an app until one fails. As in Helm, what is to go once it succeeded goes at the end, for tests are made of
    /// several objects, such as a Pod and its account.
    async fn app(&mut self, app: &AppTests) -> anyhow::Result<()> {
        let mut succeeded = Vec::new();
        let mut failed = false;
        for test in &app.tests {
            if failed {
                self.tell(skipped(self.on, app, test, "an earlier test failed"))?;
                continue;
            }
            let (tested, object) = self.one(app, test).await;
            failed = tested.phase != Phase::Succeeded;
            self.tell(tested)?;
            let Some(object) = object else { continue };
            if !failed {
                succeeded.push((test, object));
            } else if policy::goes_after(test, false) {
                self.clear(app, &object).await;
            }
        }
        for (test, object) in succeeded.into_iter().rev() {
            if policy::goes_after(test, true) {
                self.clear(app, &object).await;
            }
        }
        Ok(())
    }

    /// Runs one test; its object, where one was made.
    async fn one(&mut self, app: &AppTests, test: &SetManifest) -> (Tested, Option<TestObject>) {
        let begun = Instant::now();
        let limit = self.run.args.timeout;
        let mut object = None;
        // What an earlier run left has as long to go as the test has to end; requests come on top.
        let within = limit.saturating_add(PATIENCE);
        let made = tokio::time::timeout(within, Box::pin(self.make(test, &mut object))).await;
        let late = || Err(format!("it could not be made within {} s", within.as_secs()));
        let outcome = match (made.unwrap_or_else(|_| late()), &object) {
            (Ok(()), Some(made)) => made.ended(limit).await,
            (made, _) => made,
        };
        let (phase, message) = match outcome {
            Ok(()) => (Phase::Succeeded, String::new()),
            Err(why) => (Phase::Failed, why),
        };
        let took = begun.elapsed().as_secs();
        let logs = match &object {
            Some(made) if self.run.args.logs => made.logs().await,
            _ => Vec::new(),
        };
        let tested = Tested { phase, seconds: took, logs, ..skipped(self.on, app, test, &message) };
        (tested, object)
    }

    /// Makes room, and then the object.
    async fn make(&mut self, test: &SetManifest, object: &mut Option<TestObject>) -> Result<(), String> {
        let served = self.edge.resource(&mut self.kinds, &test.json).await.map_err(|e| format!("{e:#}"))?;
        let Some((resource, capabilities)) = served else {
            return Err("the cluster does not serve this kind".to_owned());
        };
        let id = test.identity();
        let api = self.edge.api(&resource, &capabilities, &id.namespace);
        let mut made = TestObject::new(api, self.edge.client.clone(), id);
        made.make_room(test, &self.on.hash, self.run.args.timeout).await?;
        let said = self.named(&made);
        // Before the request: who interrupts it cannot know whether it arrived.
        self.run.made.lock().insert(said.clone());
        if let Err(why) = made.create(test, &self.on.hash, &self.run.said).await {
            self.run.made.lock().remove(&said);
            return Err(why);
        }
        *object = Some(made);
        Ok(())
    }

    async fn clear(&mut self, app: &AppTests, object: &TestObject) {
        let within = self.run.args.timeout.saturating_add(PATIENCE);
        let cleared = tokio::time::timeout(within, Box::pin(object.clear(self.run.args.timeout))).await;
        let late = || Err(format!("the cluster does not answer within {} s", within.as_secs()));
        if let Err(why) = cleared.unwrap_or_else(|_| late()) {
            let why = format!("{} could not be deleted after the test: {why}", object.id);
            let problem = Problem::new(self.on.id.as_str(), Some(&app.app), &why);
            self.run.warn(&problem);
            self.problems.push(problem);
        } else {
            self.run.made.lock().remove(&self.named(object));
        }
    }

    fn named(&self, object: &TestObject) -> String {
        format!("{}: {}", self.on.id, object.id)
    }

    fn tell(&mut self, tested: Tested) -> anyhow::Result<()> {
        if self.run.prints {
            print(&tested.to_string())?;
        }
        self.tested.push(tested);
        Ok(())
    }
}
