//! Tells deployments on a cluster why their logical cloud is not there: they wait for its account, and know nothing else of it.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Logical clouds that cannot be made on one cluster, by their namespace on the hub and the name of their account: the hash of each as an
/// owner, and why.
#[derive(Default)]
pub struct Hindered(Mutex<BTreeMap<(String, String), (String, String)>>);

impl Hindered {
    /// Notes what is in the way of a logical cloud, or that nothing is.
    pub fn note(&self, namespace: &str, account: &str, hash: &str, why: Option<String>) {
        let key = (namespace.to_owned(), account.to_owned());
        let mut all = self.0.lock();
        match why {
            Some(why) => drop(all.insert(key, (hash.to_owned(), why))),
            None => drop(all.remove(&key)),
        }
    }

    /// Forgets an owner that has no work here any more.
    pub fn forget(&self, hash: &str) {
        self.0.lock().retain(|_, (of, _)| of != hash);
    }

    /// What is in the way, as its own row says it.
    pub fn why(&self, namespace: &str, account: &str) -> Option<String> {
        self.0.lock().get(&(namespace.to_owned(), account.to_owned())).map(|(_, why)| why.clone())
    }
}
