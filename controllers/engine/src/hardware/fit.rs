//! Finds a node for each replica: the largest come first, each takes the node with most left, and what it took is debited.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::demand::{Demand, Needs};
use super::nodes::Node;
use super::quantity;

/// Shares are counted in millionths.
const WHOLE: i128 = 1_000_000;

/// The lack of a cluster, for a consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The consumer, for messages: `HardwareIntent gpu, spec.consumers[detector]`.
    pub origin: String,
    /// The smallest change that would help: `1 more nvidia.com/gpu on one node`.
    pub needs: String,
}

/// One node, with the amounts of the resources that count.
#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub node: &'a Node,
    /// Amounts when nothing runs on it, by column.
    pub empty: Vec<i128>,
}

/// Amounts that are left of each node, by column.
pub(super) type Left = Vec<Vec<i128>>;

/// The nodes that count: all of them, or those that take new Pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    All,
    Open,
}

/// Nodes with the names of their columns.
#[derive(Debug)]
pub(super) struct Board<'a> {
    /// Resources that count, in the order of the columns.
    pub columns: Vec<&'a str>,
    pub slots: Vec<Slot<'a>>,
}

/// A demand, ready to be compared with nodes.
struct Ask<'a> {
    demand: &'a Demand,
    /// Column and amount.
    amounts: Vec<(usize, i128)>,
    size: i128,
}

impl Board<'_> {
    /// Finds a node for all replicas of all demands, and debits them; the first for which there is none is what lacks.
    pub fn place(&self, left: &mut [Vec<i128>], which: Which, demands: &[&Demand]) -> Result<(), Lack> {
        for ask in self.asks(demands) {
            if self.seat(left, which, &ask) < ask.demand.replicas {
                return Err(self.lack(left, which, &ask));
            }
        }
        Ok(())
    }

    /// Debits what demands would take, as far as there is a node for it.
    pub fn debit(&self, left: &mut [Vec<i128>], demands: &[&Demand]) {
        for ask in self.asks(demands) {
            self.seat(left, Which::Open, &ask);
        }
    }

    /// Debits replicas, each from the node that keeps most of what is asked for, the first of equals; answers for how many there was one.
    /// A debit changes the order of one node alone: thousands of replicas on thousands of nodes are no product.
    fn seat(&self, left: &mut [Vec<i128>], which: Which, ask: &Ask<'_>) -> usize {
        let needs = &ask.demand.required;
        let all = self.slots.iter().zip(left.iter()).enumerate();
        let fitting = all.filter(|(_, (slot, left))| {
            counts(slot.node, which) && holds(left, &ask.amounts) && labelled(slot.node, needs)
        });
        let mut best: BinaryHeap<_> =
            fitting.map(|(at, (slot, left))| (kept(slot, left, ask), Reverse(at))).collect();
        // Labels alone take nothing: all replicas find a place as the first does.
        if ask.amounts.is_empty() {
            return if best.is_empty() { 0 } else { ask.demand.replicas };
        }
        for seated in 0..ask.demand.replicas {
            let Some((_, Reverse(at))) = best.pop() else { return seated };
            debit(left, at, ask);
            if let (Some(slot), Some(left)) = (self.slots.get(at), left.get(at))
                && holds(left, &ask.amounts)
            {
                best.push((kept(slot, left, ask), Reverse(at)));
            }
        }
        ask.demand.replicas
    }

    /// True where one node has all of it.
    pub fn has(&self, left: &[Vec<i128>], needs: &Needs) -> bool {
        let Some(amounts) = self.amounts(needs) else { return false };
        let mut all = self.slots.iter().zip(left);
        all.any(|(slot, left)| slot.node.open && labelled(slot.node, needs) && holds(left, &amounts))
    }

    /// The largest first, then those that fewer nodes may take.
    fn asks<'d>(&self, demands: &[&'d Demand]) -> Vec<Ask<'d>> {
        let largest = |column: usize| {
            let all = self.slots.iter().filter_map(|slot| slot.empty.get(column));
            all.max().copied().unwrap_or_default().max(1)
        };
        let ask = |demand: &'d Demand| {
            let amounts = self.amounts(&demand.required).unwrap_or_default();
            let share = |(column, amount): &(usize, i128)| amount.saturating_mul(WHOLE) / largest(*column);
            let size = amounts.iter().map(share).max().unwrap_or_default();
            Ask { demand, amounts, size }
        };
        let mut asks: Vec<Ask<'d>> = demands.iter().copied().map(ask).collect();
        asks.sort_by_cached_key(|ask| {
            let labels = ask.demand.required.labels.len();
            (Reverse(ask.size), Reverse(labels), ask.demand.origin.clone())
        });
        asks
    }

    /// Amounts by column; `None` where a resource has none.
    fn amounts(&self, needs: &Needs) -> Option<Vec<(usize, i128)>> {
        let column = |name: &String| self.columns.iter().position(|column| column == name);
        needs.resources.iter().map(|(name, amount)| Some((column(name)?, *amount))).collect()
    }

    /// The smallest change that would give a replica a node.
    fn lack(&self, left: &[Vec<i128>], which: Which, ask: &Ask<'_>) -> Lack {
        let needs = &ask.demand.required;
        let origin = ask.demand.origin.clone();
        let say = |needs: String| Lack { origin: origin.clone(), needs };
        let with: Vec<String> = needs.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let with = if with.is_empty() { String::new() } else { format!(" with {}", with.join(" and ")) };
        if !self.slots.iter().any(|slot| counts(slot.node, which)) {
            return say(format!("a node{with} that is ready and takes Pods"));
        }
        let all = self.slots.iter().zip(left);
        let candidates = all.filter(|(slot, _)| counts(slot.node, which) && labelled(slot.node, needs));
        let missing = |left: &[i128]| -> Vec<(usize, i128)> {
            let short = |(column, amount): &(usize, i128)| {
                let lacks = amount.saturating_sub(left.get(*column).copied().unwrap_or_default());
                (lacks > 0).then_some((*column, lacks))
            };
            ask.amounts.iter().filter_map(short).collect()
        };
        let shares = |missing: &[(usize, i128)]| -> i128 {
            let amount =
                |column: usize| ask.amounts.iter().find(|(of, _)| *of == column).map_or(1, |(_, all)| *all);
            let share =
                |(column, lacks): &(usize, i128)| lacks.saturating_mul(WHOLE) / amount(*column).max(1);
            missing.iter().map(share).fold(0, i128::saturating_add)
        };
        let Some(nearest) =
            candidates.map(|(_, left)| missing(left)).min_by_key(|missing| (missing.len(), shares(missing)))
        else {
            return say(format!("a node{with}"));
        };
        let said = nearest.iter().map(|(column, lacks)| {
            let name = self.columns.get(*column).copied().unwrap_or_default();
            let binary = name != "cpu" && !name.contains('/');
            format!("{} more {name}", quantity::text(*lacks, binary))
        });
        say(format!("{} on one node{with}", said.collect::<Vec<_>>().join(" and ")))
    }
}

/// The share of a node that is left of what is asked for, after one more replica, in millionths.
fn kept(slot: &Slot<'_>, left: &[i128], ask: &Ask<'_>) -> i128 {
    let share = |(column, amount): &(usize, i128)| {
        let of = |amounts: &[i128]| amounts.get(*column).copied().unwrap_or_default();
        of(left).saturating_sub(*amount).saturating_mul(WHOLE) / of(&slot.empty).max(1)
    };
    ask.amounts.iter().map(share).min().unwrap_or_default()
}

const fn counts(node: &Node, which: Which) -> bool {
    match which {
        Which::All => true,
        Which::Open => node.open,
    }
}

fn labelled(node: &Node, needs: &Needs) -> bool {
    needs.labels.iter().all(|(key, value)| node.labels.get(key) == Some(value))
}

fn holds(left: &[i128], amounts: &[(usize, i128)]) -> bool {
    amounts.iter().all(|(column, amount)| left.get(*column).is_some_and(|left| left >= amount))
}

fn debit(left: &mut [Vec<i128>], at: usize, ask: &Ask<'_>) {
    let Some(left) = left.get_mut(at) else { return };
    for (column, amount) in &ask.amounts {
        if let Some(left) = left.get_mut(*column) {
            *left = left.saturating_sub(*amount);
        }
    }
}
