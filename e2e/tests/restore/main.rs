//! Takes away what a hub knows: its store, its stored manifests, edges that stay away. All tests have their turn on one bed.

mod abandon;
mod content;
mod copies;
mod soak;

use emco_e2e::bed::{Audit, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::OperatorInTurn;

const EDGES: [&str; 2] = ["a", "b"];

/// Nothing runs on these edges: what is deployed there is ready when it is there.
fn planes() -> BedSpec {
    let plane = |name| PlaneSpec::new(name, Parts::ApiServer);
    let edge = |name| plane(name).audit(Audit::Writes);
    BedSpec::default().with(plane("hub").own_etcd()).with(edge("a")).with(edge("b").proxied())
}

static IN_TURN: OperatorInTurn = OperatorInTurn::new(planes);
