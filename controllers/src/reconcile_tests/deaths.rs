//! The process dies at every write there is, before or after the write arrives: the next one ends where one that never died does.

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
    let mut n = 0;
    loop {
        let mut died = false;
        for arrives in [false, true] {
            let mut life = begin().await;
            life.doom(&Death::at(n, arrives));
            change(&life);
            died |= life.settle().await;
            let fate = if arrives { "arrived" } else { "did not arrive" };
            check(&mut life, &format!("died at write {n}, which {fate}")).await;
        }
        if !died {
            break;
        }
        n += 1;
    }
    assert!(n >= least, "only {n} writes were there to die at");
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
