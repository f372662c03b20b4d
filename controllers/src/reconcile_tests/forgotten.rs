//! What is cached of revisions and charts that are gone is forgotten, and what is in use is kept.

use super::life::*;
use super::shop::{TENANT, objects, values};
use crate::store::forget_gone;

#[tokio::test(start_paused = true)]
async fn what_is_cached_of_what_is_gone_is_forgotten_and_the_rest_kept() {
    let mut life = Life::with(&objects());
    life.settle().await;
    life.put(&values("blue"));
    life.settle().await;
    life.rig.see();
    let cached = life.rig.ctx.revisions.cached();
    assert!(cached >= 3, "two revisions and the logical cloud: {cached}");
    forget_gone(&life.rig.ctx);
    assert_eq!(life.rig.ctx.revisions.cached(), cached);
    assert!(life.rig.ctx.charts.compiled_bytes() > 0);

    life.delete(&format!("{TENANT}/deploymentintentgroups/shop")).await;
    life.delete(&format!("{TENANT}/compositeapps/shop")).await;
    life.settle().await;
    life.rig.see();
    forget_gone(&life.rig.ctx);
    assert_eq!(life.rig.ctx.revisions.cached(), 1, "only that of the logical cloud");
    assert_eq!(life.rig.ctx.charts.compiled_bytes(), 0);
}
