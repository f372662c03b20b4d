//! Admits one Cluster per API server before any status names it.
//!
//! The watch shows a status a moment after it was written, and two Clusters of one API server may be judged at once: whoever is admitted
//! first keeps it until its status, or the end of its Cluster, is seen.

use std::collections::BTreeMap;

use emco_engine::identity::ClusterId;
use parking_lot::Mutex;

/// Clusters at their first contact, by the UID of their kube-system: at most one entry for each.
#[derive(Default)]
pub struct Admitted(Mutex<BTreeMap<String, ClusterId>>);

impl Admitted {
    /// Takes an API server for a Cluster; else the other one that has it. `waits`: the status of that one does not say yet which it is.
    pub fn take(&self, uid: &str, id: &ClusterId, waits: impl Fn(&ClusterId) -> bool) -> Option<ClusterId> {
        let mut all = self.0.lock();
        all.retain(|of, holder| holder != id || of == uid);
        if let Some(holder) = all.get(uid).filter(|holder| *holder != id && waits(holder)) {
            return Some(holder.clone());
        }
        all.insert(uid.to_owned(), id.clone());
        None
    }

    /// A status names the API server of a Cluster, or the Cluster is not admitted or not there any more.
    pub fn forget(&self, id: &ClusterId) {
        self.0.lock().retain(|_, holder| holder != id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_api_server_is_one_clusters_until_that_is_forgotten_or_moves() {
        let admitted = Admitted::default();
        let [a, b] = ["a", "b"].map(|name| ClusterId::new("acme", name));
        assert_eq!(admitted.take("one", &a, |_| true), None);
        assert_eq!(admitted.take("one", &a, |_| true), None, "it has it");
        assert_eq!(admitted.take("one", &b, |_| true), Some(a.clone()));
        assert_eq!(admitted.take("one", &b, |_| false), None, "what has the first is known by its status");
        assert_eq!(admitted.take("two", &b, |_| true), None);
        assert_eq!(admitted.take("one", &a, |_| true), None, "the other one is another API server");
        admitted.forget(&b);
        assert_eq!(admitted.take("two", &a, |_| true), None);
        assert_eq!(admitted.0.lock().len(), 1);
    }
}
