//! Says whose credentials a logical cloud gives out, whether stored ones are still right, and when they are renewed.

use std::time::Duration;

use emco_crds::LogicalCloudSpec;
use emco_crds::fields::{DurationText, Level};
use emco_crds::logical_cloud::CredentialType;
use jiff::Timestamp;
use serde_json::json;

use crate::canonical;

mod kubeconfig;
mod renewal;
mod slots;

pub use kubeconfig::{Endpoint, MERGED_KEY, Proof, Stored, cluster_of, key_of, merged, read, write};
pub use renewal::{first, renew_at};
pub use slots::{MOST_BYTES, Slot, bits};

/// Most clusters of the one kubeconfig that has all of them.
pub const MOST_MERGED: usize = 200;
/// How long credentials are asked for, where the logical cloud does not say.
pub const DURATION: Duration = Duration::from_hours(24);
/// What an API server issues at least.
const SHORTEST: Duration = Duration::from_mins(10);

/// Kind of a credential that a cluster issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A client certificate.
    Certificate,
    /// A token of a service account.
    Token,
}

/// A person as clusters see it. Each part is a name of the hub or free of what would let it be taken for another's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Person {
    /// `emco:PROJECT:LOGICALCLOUD:NAME`.
    pub user: String,
    /// Groups with the same beginning, in order.
    pub groups: Vec<String>,
    /// Namespace of the logical cloud on the clusters.
    pub namespace: String,
    /// Name of the service account there whose tokens the person may get.
    pub account: String,
}

/// What is wanted of the credentials of a person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Whose.
    pub person: Person,
    /// Of which kind.
    pub type_: CredentialType,
    /// For how long.
    pub duration: Duration,
}

impl Wanted {
    /// What a logical cloud wants; `None` where it names nobody.
    pub fn of(spec: &LogicalCloudSpec, project: &str, cloud: &str, namespace: &str) -> Option<Self> {
        let user = spec.user.as_ref().filter(|_| spec.level != Level::Admin)?;
        let full = |name: &str| format!("emco:{project}:{cloud}:{name}");
        let mut groups: Vec<String> = user.groups.iter().map(|group| full(group)).collect();
        groups.sort();
        groups.dedup();
        let credentials = spec.credentials.clone().unwrap_or_default();
        let duration = credentials.duration.as_ref().and_then(DurationText::parse).unwrap_or(DURATION);
        Some(Self {
            person: Person {
                account: account(cloud, &full(&user.name)),
                user: full(&user.name),
                groups,
                namespace: namespace.to_owned(),
            },
            type_: credentials.type_,
            duration: duration.max(SHORTEST),
        })
    }

    /// Whether clusters need the service account.
    pub const fn takes_tokens(&self) -> bool {
        !matches!(self.type_, CredentialType::ClientCertificate)
    }

    /// Whether clusters need to know the user.
    pub const fn takes_certificates(&self) -> bool {
        !matches!(self.type_, CredentialType::ServiceAccountToken)
    }

    /// Whether a stored credential is of this person and of a kind that is wanted.
    pub fn is_met_by(&self, stored: &Stored) -> bool {
        self.is_of_person(stored)
            && match stored.kind {
                Kind::Certificate => self.takes_certificates(),
                Kind::Token => self.takes_tokens(),
            }
    }

    /// Whether a stored credential is of this person at all. One that is not is taken back at once.
    pub fn is_of_person(&self, stored: &Stored) -> bool {
        let Person { user, groups, namespace, account: _ } = &self.person;
        let named = match stored.kind {
            Kind::Certificate => stored.groups == *groups,
            // No token can name any.
            Kind::Token => true,
        };
        stored.user == *user && stored.namespace == *namespace && named
    }
}

/// Name of the service account of a person. Another person has another one, so that tokens end with the account they are of.
fn account(cloud: &str, user: &str) -> String {
    let hash = canonical::sha256_hex("emco-person/1\0", &json!(user));
    format!("emco-{cloud}-user-{}", hash.get(..8).unwrap_or_default())
}

/// What has to be done about one cluster's credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing before that time.
    Nothing(Timestamp),
    /// A first one, or another one at once.
    Issue,
    /// The next one; the present one holds.
    Renew,
}

/// Judges the credential of one cluster. `endpoint` is how the cluster is reached now, where that is known; `spread` tells clusters apart.
pub fn need(
    wanted: &Wanted,
    stored: Option<&Stored>,
    endpoint: Option<&str>,
    now: Timestamp,
    spread: u64,
) -> Need {
    let Some(stored) = stored.filter(|stored| wanted.is_met_by(stored)) else { return Need::Issue };
    let moved = endpoint.is_some_and(|endpoint| endpoint != stored.endpoint);
    let at = renew_at(stored.issued, stored.expires, spread);
    if moved || stored.expires <= now {
        Need::Issue
    } else if at <= now {
        Need::Renew
    } else {
        Need::Nothing(at)
    }
}

#[cfg(test)]
mod tests;
