//! Names the kinds of objects that own revisions, shards, and what is on clusters.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::label;

/// Kind of an owner, as stored objects and labels have it: a text on the hub, a closed choice here.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum OwnerKind {
    /// An application on many clusters.
    DeploymentIntentGroup,
    /// A namespace on many clusters.
    LogicalCloud,
    /// A kind that this version does not know: a later one stored it. It is none of the others.
    Other(OtherKind),
}

/// A text that names none of the known kinds. Only [`OwnerKind::from`] makes it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OtherKind(Box<str>);

impl OwnerKind {
    /// All that this version knows.
    pub const KNOWN: [Self; 2] = [Self::DeploymentIntentGroup, Self::LogicalCloud];

    /// The text on the hub.
    pub fn as_str(&self) -> &str {
        match self {
            Self::DeploymentIntentGroup => "DeploymentIntentGroup",
            Self::LogicalCloud => "LogicalCloud",
            Self::Other(OtherKind(text)) => text,
        }
    }

    /// Beginning of generated names: `dig-shop-3`, `lc-edge-s07`.
    pub const fn short(&self) -> &'static str {
        match self {
            Self::DeploymentIntentGroup => "dig",
            Self::LogicalCloud => "lc",
            Self::Other(_) => "obj",
        }
    }

    /// Selects by label what is stored of one owner.
    pub fn selector(&self, name: &str) -> String {
        format!("{}={self},{}={name}", label::OWNER_KIND, label::OWNER_NAME)
    }
}

impl Default for OwnerKind {
    fn default() -> Self {
        Self::from("")
    }
}

impl fmt::Display for OwnerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl From<&str> for OwnerKind {
    fn from(text: &str) -> Self {
        let known = Self::KNOWN.into_iter().find(|kind| kind.as_str() == text);
        known.unwrap_or_else(|| Self::Other(OtherKind(text.into())))
    }
}

impl From<String> for OwnerKind {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<OwnerKind> for String {
    fn from(kind: OwnerKind) -> Self {
        kind.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use kube::Resource as _;
    use serde_json::json;

    use super::*;
    use crate::{DeploymentIntentGroup, LogicalCloud};

    #[test]
    fn a_kind_is_stored_as_the_text_that_it_was_read_from() {
        for text in ["DeploymentIntentGroup", "LogicalCloud", "ClusterNetwork", "logicalcloud", ""] {
            let kind: OwnerKind = serde_json::from_value(json!(text)).unwrap();
            assert_eq!((kind.as_str(), kind.to_string().as_str()), (text, text));
            assert_eq!(serde_json::to_value(&kind).unwrap(), json!(text));
        }
        assert_eq!(OwnerKind::default().as_str(), "");
    }

    #[test]
    fn only_the_kinds_names_are_known() {
        assert_eq!(OwnerKind::from(&*DeploymentIntentGroup::kind(&())), OwnerKind::DeploymentIntentGroup);
        assert_eq!(OwnerKind::from(&*LogicalCloud::kind(&())), OwnerKind::LogicalCloud);
        for text in ["ClusterNetwork", "deploymentintentgroup", "LogicalCloud ", ""] {
            let kind = OwnerKind::from(text);
            assert!(matches!(kind, OwnerKind::Other(_)) && !OwnerKind::KNOWN.contains(&kind), "{text}");
        }
    }

    #[test]
    fn generated_names_begin_with_the_kind_in_short() {
        let short = |text| OwnerKind::from(text).short();
        assert_eq!(
            [short("DeploymentIntentGroup"), short("LogicalCloud"), short("ClusterNetwork")],
            ["dig", "lc", "obj"]
        );
    }
}
