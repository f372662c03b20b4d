//! The process dies before its first write and after every one there is: the next one ends where one that never died does.

use super::life::*;

/// Lives that `begin` and in which a `change` is made, once; what follows is the process's. `check` is given the end of each, and
/// a text of how it came to it: the first is of one that never died. At `least` so many writes there must have been to die at.
pub async fn at_each_write(
    begin: impl AsyncFn() -> Life,
    change: impl Fn(&Life),
    mut check: impl AsyncFnMut(&mut Life, &str),
    least: u64,
) {
    let mut undisturbed = begin().await;
    change(&undisturbed);
    undisturbed.settle().await;
    check(&mut undisturbed, "never died").await;
    let mut dies = async |death: Death, how: &str| {
        let mut life = begin().await;
        life.doom(&death);
        change(&life);
        let died = life.settle().await;
        check(&mut life, how).await;
        died
    };
    // One that dies before a later write arrives leaves what one leaves that dies once the write before has: the dead one's
    // requests are all refused.
    dies(Death::at(0, false), "died before it wrote").await;
    let mut writes = 0;
    while dies(Death::at(writes, true), &format!("died at write {writes}")).await {
        writes += 1;
    }
    assert!(writes >= least, "only {writes} writes were there to die at");
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
    let mut undisturbed = begin().await;
    change(&undisturbed);
    undisturbed.settle().await;
    next(&undisturbed);
    undisturbed.settle().await;
    check(&mut undisturbed, "never died").await;
    for write in 0.. {
        let mut life = begin().await;
        life.doom(&Death::at(write, true));
        change(&life);
        let died = life.until_death().await;
        next(&life);
        life.settle().await;
        check(&mut life, &format!("died at write {write}, and then the next change")).await;
        if !died {
            assert!(write >= least, "only {write} writes were there to die at");
            return;
        }
    }
}
