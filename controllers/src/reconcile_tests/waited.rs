//! What waits for a person is told once: a line of the log, and an Event.

use serde_json::Value;

use super::approvals::{decide, pending, short, waiting};
use super::life::*;
use super::log::Log;
use super::shop::values;

/// Type and message of the Events of the shop with this reason.
pub(super) fn told(life: &Life, reason: &str) -> Vec<(String, String)> {
    let events = life.rig.hub.of_kind("Event").into_iter();
    let of = events.filter(|event| event["involvedObject"]["name"] == "shop" && event["reason"] == reason);
    let text = |event: &Value, key: &str| event[key].as_str().unwrap_or_default().to_owned();
    of.map(|event| (text(&event, "type"), text(&event, "message"))).collect()
}

#[tokio::test(start_paused = true)]
async fn each_plan_that_begins_to_wait_is_one_line_and_one_event() {
    let log = Log::begin();
    let mut life = waiting("Plan").await;
    let waited_for = |log: &Log| {
        let said = log.take();
        let lines = said.lines().filter(|line| !line.starts_with("INFO") || line.contains("waited for"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let said = |life: &Life, revision: i64| {
        let short = short(&pending(life)).to_owned();
        format!("revision {revision} waits: approve digest {short}: kubectl emco approve dig/shop -n team-a")
    };
    let fields = "project=\"team-a\" deployment=\"shop\"";
    let line = |said: &str, more: &str| {
        format!("INFO a person is waited for: {said} {fields}{more} reason=\"AwaitingApproval\"")
    };
    let first = said(&life, 1);
    assert_eq!(waited_for(&log), [line(&first, "")]);
    assert_eq!(told(&life, "AwaitingApproval"), [("Normal".to_owned(), first)]);
    decide(&mut life, "first", "Approved").await;
    life.put(&values("blue"));
    life.settle().await;
    let second = said(&life, 2);
    assert_eq!(waited_for(&log), [line(&second, " revision=1")]);
    // The next process knows it, and what runs is as ready as before.
    let ready = told(&life, "Ready");
    life.restart().await;
    life.settle().await;
    assert_eq!(waited_for(&log), Vec::<String>::new());
    let plans = told(&life, "AwaitingApproval").into_iter().map(|(_, message)| message);
    assert_eq!(plans.filter(|message| *message == second).count(), 1);
    assert_eq!(told(&life, "Ready"), ready);
    assert!(ready.iter().all(|(_, message)| !message.contains("waits")), "{ready:?}");
}
