//! Compares the other ends of rules with clients of the graph.

use std::collections::BTreeSet;

use ipnet::IpNet;

use super::pods::PodSet;
use super::rules::End;
use crate::traffic::graph::{Peer, Within};

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

/// True where all of an end is among the others.
pub fn is_within(end: &End, others: &[&End]) -> bool {
    if others.contains(&&End::Anybody) {
        return true;
    }
    match end {
        End::Anybody => false,
        End::Pods(set) => {
            let sets = others.iter().filter_map(|other| match other {
                End::Pods(set) => Some(set),
                End::Block(..) | End::Anybody => None,
            });
            set.is_within(&sets.collect::<Vec<_>>())
        }
        End::Block(cidr, except) => {
            let blocks = others.iter().filter_map(|other| match other {
                End::Block(cidr, except) => Some(without(*cidr, except)),
                End::Pods(_) | End::Anybody => None,
            });
            let whole = IpNet::aggregate(&blocks.flatten().collect());
            without(*cidr, except).iter().all(|part| whole.iter().any(|of| of.contains(part)))
        }
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
