//! Judges whether a cluster has room for what apps need: when its nodes are as they are, and when nothing runs on them.

use std::collections::BTreeSet;

use super::demand::Demand;
use super::fit::{Board, Lack, Left, Slot, Which};
use super::nodes::{Amounts, NodeFacts, Read};

/// An answer to the question for room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verdict {
    /// It has.
    #[default]
    Fits,
    /// It has not, even when nothing else runs there.
    Missing(Lack),
    /// Others use it.
    InUse(Lack),
    /// That is not known, for this is needed: `the right to list its Pods`.
    Unknown(&'static str),
}

impl Verdict {
    /// The lack of a cluster that has no room.
    pub const fn lack(&self) -> Option<&Lack> {
        match self {
            Self::Missing(lack) | Self::InUse(lack) => Some(lack),
            Self::Fits | Self::Unknown(_) => None,
        }
    }
}

/// The nodes of one cluster, for what a deployment needs.
#[derive(Debug)]
pub struct Room<'a> {
    /// The reason why there are no nodes.
    unknown: Option<&'static str>,
    board: Board<'a>,
    empty: Left,
    /// Amounts that are left beside all that runs there and was just given; the reason why they are not known.
    free: Result<Left, &'static str>,
}

impl<'a> Room<'a> {
    /// Of a cluster; `columns` are the resources that the deployment asks for.
    pub fn new(facts: Option<&'a NodeFacts>, columns: &[&'a str]) -> Self {
        let board = Board { columns: columns.to_vec(), slots: Vec::new() };
        let no = |unknown| Self { unknown: Some(unknown), board, empty: Vec::new(), free: Err(unknown) };
        let Some(facts) = facts else { return no("its nodes to be listed") };
        let nodes = match &facts.nodes {
            Read::Done(nodes) => nodes,
            Read::Forbidden => return no("the right to list its nodes"),
            Read::Not => return no("its nodes to be listed"),
        };
        let given: Vec<&Demand> = facts.given.iter().map(AsRef::as_ref).collect();
        // A demand that was given is compared by all that it asks for.
        let more = given.iter().flat_map(|demand| demand.required.resources.keys().map(String::as_str));
        let all: BTreeSet<&str> = columns.iter().copied().chain(more).collect();
        let columns: Vec<&str> = all.into_iter().collect();
        let of = |amounts: &Amounts| -> Vec<i128> {
            columns.iter().map(|column| amounts.get(*column).copied().unwrap_or_default()).collect()
        };
        let slots: Vec<_> = nodes.values().map(|node| Slot { node, empty: of(&node.allocatable) }).collect();
        let empty: Left = slots.iter().map(|slot| slot.empty.clone()).collect();
        let free = match &facts.requested {
            Read::Done(requested) => {
                let mut free = empty.clone();
                for (name, left) in nodes.keys().zip(&mut free) {
                    let used = requested.get(name).map(of).unwrap_or_default();
                    for (left, used) in left.iter_mut().zip(used) {
                        *left = left.saturating_sub(used);
                    }
                }
                Ok(free)
            }
            Read::Forbidden => Err("the right to list its Pods"),
            Read::Not => Err("its Pods to be listed"),
        };
        let board = Board { columns, slots };
        let free = free.map(|mut free| {
            board.debit(&mut free, &given);
            free
        });
        Self { unknown: None, board, empty, free }
    }

    /// Asks for room beside all that runs there.
    pub fn takes(&self, demands: &[&Demand]) -> Verdict {
        if let Some(unknown) = self.unknown {
            return Verdict::Unknown(unknown);
        }
        let counted = demands.iter().any(|demand| !demand.required.resources.is_empty());
        let left = if counted { self.free.as_ref() } else { Ok(&self.empty) };
        let lacks = match left {
            Ok(left) => match self.board.place(&mut left.clone(), Which::Open, demands) {
                Ok(()) => return Verdict::Fits,
                Err(lack) => Verdict::InUse(lack),
            },
            Err(unknown) => Verdict::Unknown(unknown),
        };
        match self.board.place(&mut self.empty.clone(), Which::Open, demands) {
            Ok(()) => lacks,
            Err(lack) => Verdict::Missing(lack),
        }
    }

    /// Asks for room if nothing else ran there. All nodes count, with all of their devices: one that is not ready for a while, or cordoned,
    /// moves nothing, nor does a device plugin that restarts.
    pub fn carries(&self, demands: &[&Demand]) -> Verdict {
        if let Some(unknown) = self.unknown {
            return Verdict::Unknown(unknown);
        }
        let mut whole = self.empty.clone();
        let nodes = self.board.slots.iter().map(|slot| slot.node).zip(&mut whole);
        for (node, left) in nodes.filter(|(node, _)| !node.away.is_empty()) {
            for (left, column) in left.iter_mut().zip(&self.board.columns) {
                *left = left.saturating_add(node.away.get(*column).copied().unwrap_or_default());
            }
        }
        match self.board.place(&mut whole, Which::All, demands) {
            Ok(()) => Verdict::Fits,
            Err(lack) => Verdict::Missing(lack),
        }
    }

    /// The weight of what is preferred and there.
    pub fn weight(&self, demands: &[&Demand]) -> u32 {
        let left = self.free.as_ref().unwrap_or(&self.empty);
        let preferred = demands.iter().flat_map(|demand| &demand.preferred);
        preferred.filter(|(_, needs)| self.board.has(left, needs)).map(|(weight, _)| weight).sum()
    }
}

#[cfg(test)]
mod tests;
