//! Somebody sets the clock of the hub by an hour, or it is wrong when a machine starts: nothing is given up for it, nothing waits
//! longer than the jump, and nothing is told again and again.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::life::Life;
use super::rig::*;
use super::shop::{TENANT, deployment, objects};
use crate::api::unreachable::UnreachableSince;
use crate::api::world::Clock as _;
use crate::object::context::Outcome;

const HOUR: Duration = Duration::from_hours(1);
const MINUTE: Duration = Duration::from_mins(1);

/// The shop gives up after so long; cluster b is away, and the shop ends.
async fn ending(after: &str) -> Life {
    let mut shop = deployment("edge");
    shop["spec"]["unreachable"] = json!({"action": "Abandon", "after": after});
    let mut all = objects();
    all.pop();
    all.push(shop);
    let mut life = Life::with(&all);
    as_in_production(&mut life);
    life.settle().await;
    life.rig.fails("b", "Timeout");
    life.settle().await;
    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.settle().await;
    life
}

/// A process that begins believes no clock alone.
fn as_in_production(life: &mut Life) {
    life.rig.ctx.unreachable = UnreachableSince::new(Arc::new(life.rig.clock.clone()), HOUR);
}

async fn pass(life: &mut Life, time: Duration) {
    life.rig.clock.forward(time);
    life.settle().await;
}

fn given_up(life: &Life) -> bool {
    life.dig() == Value::Null
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_by_an_hour_gives_nothing_up_and_spares_nothing() {
    for after in [30, 90] {
        for ahead in [true, false] {
            let mut life = ending(&format!("{after}m")).await;
            pass(&mut life, 10 * MINUTE).await;
            if ahead {
                life.rig.clock.set_forward(HOUR);
            } else {
                life.rig.clock.back(HOUR);
            }
            life.settle().await;
            assert!(!given_up(&life), "after {after}m, ahead {ahead}: ten minutes went by");
            pass(&mut life, MINUTE * (after - 11)).await;
            assert!(!given_up(&life), "after {after}m, ahead {ahead}: a minute is left");
            pass(&mut life, 2 * MINUTE).await;
            assert!(given_up(&life), "after {after}m, ahead {ahead}: it is over");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_starts_with_a_wrong_clock_gives_nothing_up() {
    for ahead in [true, false] {
        let mut life = ending("24h").await;
        pass(&mut life, HOUR).await;
        let wrong = 10_000 * HOUR;
        if ahead {
            life.rig.clock.set_forward(wrong);
        } else {
            life.rig.clock.back(wrong);
        }
        life.restart().await;
        as_in_production(&mut life);
        life.settle().await;
        pass(&mut life, 59 * MINUTE).await;
        assert!(!given_up(&life), "this process has not seen it away for an hour, ahead {ahead}");
        // Within that time somebody mends the clock, and the next process begins with it.
        if ahead {
            life.rig.clock.back(wrong);
        } else {
            life.rig.clock.set_forward(wrong);
        }
        life.restart().await;
        as_in_production(&mut life);
        life.settle().await;
        pass(&mut life, 21 * HOUR + 58 * MINUTE).await;
        assert!(!given_up(&life), "ahead {ahead}: three minutes are left");
        pass(&mut life, 4 * MINUTE).await;
        assert!(given_up(&life), "ahead {ahead}: it is over, and the time before the restart counted");
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_begins_after_the_time_is_over_looks_for_an_hour_itself() {
    let mut life = ending("24h").await;
    life.rig.clock.forward(30 * HOUR);
    life.restart().await;
    as_in_production(&mut life);
    life.settle().await;
    assert!(!given_up(&life));
    pass(&mut life, HOUR).await;
    assert!(given_up(&life));
}

fn warnings(rig: &Rig) -> usize {
    rig.hub.objects().values().filter(|o| o["kind"] == "Event" && o["reason"] == "EndSoon").count()
}

/// How often the Cluster was written while this was done.
async fn writes(rig: &mut Rig) -> usize {
    rig.hub.take_seen();
    assert!(rig.round().await.is_empty());
    rig.writes().iter().filter(|seen| seen.path.contains("/clusters/a")).count()
}

#[tokio::test]
async fn a_warning_of_credentials_that_end_follows_the_clock_once_for_each_time_it_is_set() {
    let mut rig = Rig::new();
    rig.answers("a", "uid-a");
    let now = rig.clock.now_ms() / 1000;
    let day = 86_400;
    let claims = json!({"iat": now - 60 * day, "exp": now + 14 * day + 1800}).to_string();
    for object in world() {
        rig.hub.put("test", &object);
    }
    rig.hub.put("test", &secret_with("a", &format!("head.{}.signature", URL_SAFE_NO_PAD.encode(claims))));
    rig.settle().await;
    assert_eq!(warnings(&rig), 0, "it is half an hour too early");
    rig.clock.set_forward(HOUR);
    assert_eq!(writes(&mut rig).await, 1);
    rig.settle().await;
    assert_eq!(warnings(&rig), 1);
    for _ in 0..5 {
        rig.clock.forward(MINUTE);
        assert_eq!(writes(&mut rig).await, 0, "said once");
    }
    rig.clock.back(HOUR);
    assert_eq!(writes(&mut rig).await, 1, "it is taken back");
    rig.see();
    let Ok(Outcome::After(again)) = crate::reconcile::cluster::reconcile(&rig.ctx, "acme", "a").await else {
        panic!("nobody would look again")
    };
    assert!(again <= 30 * MINUTE, "{again:?}");
    for _ in 0..5 {
        rig.clock.forward(MINUTE);
        assert_eq!(writes(&mut rig).await, 0);
    }
    rig.clock.forward(again);
    assert_eq!(writes(&mut rig).await, 1);
    rig.settle().await;
    assert!(warnings(&rig) <= 2, "once for each time the moment came");
    assert_eq!(
        rig.ready("/apis/emco.io/v1alpha1/namespaces/acme/clusters/a").0,
        "True",
        "it works all the time"
    );
}
