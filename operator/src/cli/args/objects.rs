//! Arguments that select objects by kind, name and readiness.

use std::fmt;
use std::str::FromStr;

use clap::Args;
use emco_engine::identity::Identity;

/// Which objects; a value that is not given selects everything, and those that are given hold together.
#[derive(Args, Clone, Debug, Default)]
pub struct ObjectArgs {
    /// Only objects of this kind, as KIND or KIND.GROUP, such as Deployment or Deployment.apps; repeat for several.
    #[arg(long, value_name = "KIND")]
    pub kind: Vec<KindName>,
    /// Only objects of this name; repeat for several.
    #[arg(long = "name", value_name = "OBJECT")]
    pub object: Vec<String>,
    /// Only what is ready.
    #[arg(long, conflicts_with = "not_ready")]
    pub ready: bool,
    /// Only what is not ready.
    #[arg(long)]
    pub not_ready: bool,
}

impl ObjectArgs {
    /// Whether everything is selected.
    pub const fn is_all(&self) -> bool {
        !self.names_objects() && !self.ready && !self.not_ready
    }

    /// Whether objects are selected by kind or name.
    pub const fn names_objects(&self) -> bool {
        !self.kind.is_empty() || !self.object.is_empty()
    }

    /// Whether an object is selected by its kind and its name.
    pub fn takes(&self, group: &str, kind: &str, name: &str) -> bool {
        (self.kind.is_empty() || self.kind.iter().any(|one| one.is(group, kind)))
            && (self.object.is_empty() || self.object.iter().any(|one| one == name))
    }

    /// The same of an identity.
    pub fn takes_identity(&self, id: &Identity) -> bool {
        self.takes(&id.group, &id.kind, &id.name)
    }

    /// The same of an object as reports name it: `group/kind/namespace/name`, without the parts that it has not.
    pub fn takes_reported(&self, object: &str) -> bool {
        reported(object).is_some_and(|(group, kind, name)| self.takes(group, kind, name))
    }

    /// Whether what is ready, or is not, is selected.
    pub const fn takes_readiness(&self, ready: bool) -> bool {
        if ready { !self.not_ready } else { !self.ready }
    }
}

/// Group, kind and name of an object as reports name it. Groups have no capital letter and kinds of the core group begin with one, so
/// the text is unambiguous.
pub fn reported(object: &str) -> Option<(&str, &str, &str)> {
    let object = object.trim_start_matches('/');
    let (before, name) = object.rsplit_once('/')?;
    let is_core = before.starts_with(|first: char| first.is_ascii_uppercase());
    let (group, rest) = if is_core { ("", before) } else { before.split_once('/')? };
    let kind = rest.split('/').next()?;
    Some((group, kind, name))
}

/// A kind as people write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KindName {
    kind: String,
    /// Any, if absent.
    group: Option<String>,
}

impl KindName {
    /// Whether it names this kind. Capital letters make no difference.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.kind.eq_ignore_ascii_case(kind)
            && self.group.as_deref().is_none_or(|own| own.eq_ignore_ascii_case(group))
    }
}

impl FromStr for KindName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, group) = match text.split_once('.') {
            Some((kind, group)) => (kind, Some(group)),
            None => (text, None),
        };
        let good = |text: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
            !text.is_empty() && text.bytes().all(allowed)
        };
        if !good(kind) || group.is_some_and(|group| !good(group)) {
            return Err("write KIND or KIND.GROUP, such as Deployment or Deployment.apps".to_owned());
        }
        Ok(Self { kind: kind.to_owned(), group: group.map(str::to_owned) })
    }
}

impl fmt::Display for KindName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&kind_text(self.group.as_deref().unwrap_or_default(), &self.kind))
    }
}

/// A kind as [`KindName`] reads it: `ConfigMap`, `Deployment.apps`.
pub fn kind_text(group: &str, kind: &str) -> String {
    if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::Args;

    fn kind(text: &str) -> KindName {
        text.parse().unwrap()
    }

    #[test]
    fn a_kind_is_named_with_or_without_its_group() {
        for (text, group, is, wanted) in [
            ("Deployment", "apps", "Deployment", true),
            ("deployment", "apps", "Deployment", true),
            ("Deployment.apps", "apps", "Deployment", true),
            ("Deployment.example.com", "apps", "Deployment", false),
            ("Deployment", "apps", "DeploymentSet", false),
        ] {
            assert_eq!(kind(text).is(group, is), wanted, "{text}");
        }
        for bad in ["", ".apps", "Deployment.", "apps/Deployment"] {
            assert!(bad.parse::<KindName>().is_err_and(|why| why.contains("KIND.GROUP")), "{bad}");
        }
    }

    #[test]
    fn a_reported_object_has_a_group_a_kind_and_a_name() {
        for (object, parts) in [
            ("apps/Deployment/shop/web", Some(("apps", "Deployment", "web"))),
            ("ConfigMap/shop/web", Some(("", "ConfigMap", "web"))),
            ("/ConfigMap/shop/web", Some(("", "ConfigMap", "web"))),
            ("Namespace/shop", Some(("", "Namespace", "shop"))),
            (
                "rbac.authorization.k8s.io/ClusterRole/shop",
                Some(("rbac.authorization.k8s.io", "ClusterRole", "shop")),
            ),
            ("", None),
        ] {
            assert_eq!(reported(object), parts, "{object}");
        }
    }

    #[test]
    fn filters_on_objects_hold_together() {
        let wanted = ObjectArgs {
            kind: vec![kind("Service"), kind("ConfigMap")],
            object: vec!["web".to_owned()],
            ..ObjectArgs::default()
        };
        assert!(wanted.takes_reported("Service/shop/web") && wanted.takes_reported("ConfigMap/shop/web"));
        assert!(!wanted.takes_reported("Service/shop/db") && !wanted.takes_reported("Secret/shop/web"));
        assert!(!wanted.takes_reported(""), "what is about no object is not selected by an object");
        assert!(ObjectArgs::default().is_all() && !wanted.is_all());
    }

    #[test]
    fn ready_and_not_ready_exclude_each_other() {
        for command in [&["status"][..], &["get", "shop/till"]] {
            let line = [&["kubectl-emco"][..], command].concat();
            let read = |flags: &[&str]| Args::try_parse_from([&line[..], flags].concat());
            assert!(read(&["--ready"]).is_ok() && read(&["--not-ready", "--kind", "Pod"]).is_ok());
            let error = read(&["--ready", "--not-ready"]).unwrap_err().to_string();
            assert!(error.contains("cannot be used with"), "{error}");
        }
        let ready = ObjectArgs { ready: true, ..ObjectArgs::default() };
        assert!(ready.takes_readiness(true) && !ready.takes_readiness(false));
        let not_ready = ObjectArgs { not_ready: true, ..ObjectArgs::default() };
        assert!(!not_ready.takes_readiness(true) && not_ready.takes_readiness(false));
    }
}
