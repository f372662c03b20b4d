//! Says what containers need of nodes, what the nodes of a cluster have, and whether the one fits the other. Pure: nothing is asked here.

mod demand;
mod fit;
mod nodes;
mod outlook;
pub mod quantity;
mod room;

pub use demand::{Demand, Demands, Fault, Needs, demands, origin};
pub use fit::Lack;
pub use nodes::{Amounts, Node, NodeFacts, Nodes, Read, Requested, amounts};
pub use outlook::{Outlook, outlook};
pub use room::{Room, Verdict};
