//! Compares the other ends of rules with clients of the graph.

use std::collections::BTreeSet;

use ipnet::IpNet;

use super::pods::PodSet;
use super::rules::End;
use crate::traffic::graph::{Peer, Within};

/// Most parts that are taken out of a network: one with more is not looked into.
const MOST_HOLES: usize = 64;

/// A client's end, as a rule would have it.
pub fn of_client(peer: &Peer, namespace: &str) -> End {
    match peer {
        Peer::Block(cidr) => match cidr.parse::<IpNet>() {
            Ok(net) => End::Block(net.trunc(), Vec::new()),
            // It was refused before.
            Err(_) => End::Pods(PodSet::of_namespaces(BTreeSet::new(), &emco_crds::LabelSelector::default())),
        },
        Peer::Pods(Within::Own, selector) => End::Pods(PodSet::of_namespace(namespace, selector)),
        Peer::Pods(Within::Named(names), selector) => {
            End::Pods(PodSet::of_namespaces(names.iter().cloned().collect(), selector))
        }
    }
}

/// Ends together, to find whether another one is among them.
pub struct Union<'e> {
    is_all: bool,
    sets: Vec<&'e PodSet>,
    /// Apart from each other, and in order.
    blocks: Vec<IpNet>,
}

impl<'e> Union<'e> {
    /// All of these.
    pub fn of(ends: impl IntoIterator<Item = &'e End>) -> Self {
        let mut union = Self { is_all: false, sets: Vec::new(), blocks: Vec::new() };
        for end in ends {
            match end {
                End::Anybody => union.is_all = true,
                End::Pods(set) => union.sets.push(set),
                // One that is not looked into holds nothing.
                End::Block(_, except) if except.len() > MOST_HOLES => {}
                End::Block(cidr, except) => union.blocks.extend(without(*cidr, except)),
            }
        }
        union.blocks = IpNet::aggregate(&union.blocks);
        union
    }

    /// True where all of an end is among them.
    pub fn holds(&self, end: &End) -> bool {
        if self.is_all {
            return true;
        }
        match end {
            End::Anybody => false,
            End::Pods(set) => set.is_within(&self.sets),
            // One that is not looked into is taken for whole.
            End::Block(cidr, except) if except.len() > MOST_HOLES => self.has_net(cidr),
            End::Block(cidr, except) => without(*cidr, except).iter().all(|part| self.has_net(part)),
        }
    }

    /// Only the last one that begins no later can hold it.
    fn has_net(&self, net: &IpNet) -> bool {
        let later = self.blocks.partition_point(|block| block <= net);
        let last = later.checked_sub(1).and_then(|at| self.blocks.get(at));
        last.is_some_and(|block| block.contains(net))
    }
}

/// A network without parts of it.
fn without(net: IpNet, except: &[IpNet]) -> Vec<IpNet> {
    except.iter().fold(vec![net], |parts, hole| parts.into_iter().flat_map(|part| cut(part, hole)).collect())
}

fn cut(net: IpNet, hole: &IpNet) -> Vec<IpNet> {
    if hole.contains(&net) {
        return Vec::new();
    }
    if !net.contains(hole) {
        return vec![net];
    }
    match net.subnets(net.prefix_len() + 1) {
        Ok(halves) => halves.flat_map(|half| cut(half, hole)).collect(),
        // It has no halves: it would be the hole.
        Err(_) => Vec::new(),
    }
}

/// In words.
pub fn described(end: &End) -> String {
    match end {
        End::Anybody => "any pod of any namespace and any address".to_owned(),
        End::Pods(set) => set.described(),
        End::Block(cidr, except) if except.is_empty() => format!("addresses of {cidr}"),
        End::Block(cidr, except) => {
            let holes = except.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            format!("addresses of {cidr} without {holes}")
        }
    }
}
