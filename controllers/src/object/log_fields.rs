//! Names objects in log lines, in the words that people filter by, and makes texts of others fit there.

use emco_crds::OwnerKind;
use emco_engine::conditions::truncate;

use crate::api;

/// Longest message in a log line, in bytes.
const LONGEST: usize = 512;

/// Which object of the hub a line is about. Fields that do not apply are left out of the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogFields {
    /// Project that owns its namespace.
    pub project: Option<String>,
    /// Name, of a deployment.
    pub deployment: Option<String>,
    /// `LogicalCloud/team-a/default`, of anything else.
    pub object: Option<String>,
}

impl LogFields {
    /// The fields of an object. `project` is that of its namespace, if one owns it.
    pub fn of(project: Option<String>, kind: &str, namespace: &str, name: &str) -> Self {
        if OwnerKind::from(kind) == OwnerKind::DeploymentIntentGroup {
            return Self { project, deployment: Some(name.to_owned()), object: None };
        }
        let path: Vec<&str> = [kind, namespace, name].into_iter().filter(|part| !part.is_empty()).collect();
        Self { project, deployment: None, object: Some(path.join("/")) }
    }
}

/// A text of others, as it may stand in a line of the log: it can neither end the line nor fill the disk.
pub fn one_line(text: &str) -> String {
    truncate(&api::one_line(text), LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_named_by_name_and_anything_else_by_its_path() {
        let of = |kind, namespace| LogFields::of(Some("team".to_owned()), kind, namespace, "shop");
        let (project, deployment) = (Some("team".to_owned()), Some("shop".to_owned()));
        let named = LogFields { project, deployment, object: None };
        assert_eq!(of("DeploymentIntentGroup", "team-a"), named);
        assert_eq!(of("LogicalCloud", "team-a").object.as_deref(), Some("LogicalCloud/team-a/shop"));
        assert_eq!(of("Project", "").object.as_deref(), Some("Project/shop"));
    }
    #[test]
    fn text_of_others_makes_no_second_line() {
        assert_eq!(one_line("a\nERROR b\u{1b}[31m"), "a ERROR b [31m");
        assert!(one_line(&"x".repeat(9000)).len() <= LONGEST);
    }
}
