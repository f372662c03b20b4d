//! The process dies before its first write and after others, up to the last: the next one ends where one that never died does.
//! After which writes, `crash_points` says: all of them, or a sample.
//!
//! The life until a death is the same for all of them: it is lived once, and each process that follows a death begins with a copy of
//! what there was at that write.

use super::life::*;
use crate::crash_points;

/// How a process died after so many writes.
fn died(writes: u64) -> String {
    match writes.checked_sub(1) {
        // One that dies before a later write arrives leaves what one leaves that dies once the write before has.
        None => "died before it wrote".to_owned(),
        Some(last) => format!("died at write {last}"),
    }
}

/// Lives that `begin` and in which a `change` is made, once; what follows is the process's. `check` is given the end of each, and
/// a text of how it came to it: the first is of one that never died. At `least` so many writes there must have been to die at.
pub async fn at_each_write(
    begin: impl AsyncFn() -> Life,
    change: impl Fn(&Life),
    mut check: impl AsyncFnMut(&mut Life, &str),
    least: u64,
) {
    let deaths = {
        let mut undisturbed = begin().await;
        let record = undisturbed.record();
        change(&undisturbed);
        undisturbed.settle().await;
        let deaths = record.end();
        check(&mut undisturbed, "never died").await;
        deaths
    };
    assert!(deaths.writes >= least, "only {} writes were there to die at", deaths.writes);
    for (writes, left) in crash_points::chosen(deaths.each) {
        let mut life = Life::after(left);
        life.settle().await;
        check(&mut life, &died(writes)).await;
    }
}

/// The same, where the check is that everything ends as without a death, after what comes late (`rest`).
pub async fn at_every_write(
    begin: impl AsyncFn() -> Life,
    change: impl Fn(&Life),
    rest: impl AsyncFn(&mut Life),
    least: u64,
) {
    let mut wanted = None;
    let check = async |life: &mut Life, how: &str| {
        rest(life).await;
        let found = life.everything();
        let wanted = wanted.get_or_insert_with(|| found.clone());
        assert!(found == *wanted, "{how}:\n{}", difference(&found, wanted));
    };
    at_each_write(begin, change, check, least).await;
}

/// Lives in which a `change` is cut off by a death at each of its writes, and the process after that finds the `next` change. `check` is
/// given the end of each, as with [`at_each_write`]: the first is of a life in which the change was complete before the next one.
pub async fn then_another(
    begin: impl AsyncFn() -> Life,
    (change, next): (impl Fn(&Life), impl Fn(&Life)),
    mut check: impl AsyncFnMut(&mut Life, &str),
    least: u64,
) {
    let deaths = {
        let mut undisturbed = begin().await;
        let record = undisturbed.record();
        change(&undisturbed);
        undisturbed.settle().await;
        let deaths = record.end();
        next(&undisturbed);
        undisturbed.settle().await;
        check(&mut undisturbed, "never died").await;
        deaths
    };
    assert!(deaths.writes >= least, "only {} writes were there to die at", deaths.writes);
    let cut_off = deaths.each.into_iter().filter(|(writes, _)| *writes > 0);
    for (writes, left) in crash_points::chosen(cut_off) {
        let mut life = Life::after(left);
        next(&life);
        life.settle().await;
        check(&mut life, &format!("{}, and then the next change", died(writes))).await;
    }
}
