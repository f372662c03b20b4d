//! Compares the words with which Helm and EMCO refuse a chart: the place in its templates, or the object.

use anyhow::{Context as _, Result, ensure};

/// What a release is refused for.
#[derive(Debug, PartialEq, Eq)]
enum Place<'a> {
    /// A template, with the words that follow.
    Template { at: &'a str, words: &'a str },
    /// A file whose text is no YAML. The reason is a library's.
    File(&'a str),
    /// An object that the API server refuses, with the first field that it names.
    Object { kind: &'a str, name: &'a str, field: &'a str },
}

/// An error unless `ours` names the place and has the words of `helm`. Answers what both refuse.
pub fn same(helm: &str, ours: &str) -> Result<String> {
    let place = place(said(helm)?).with_context(|| format!("Helm names no place: {helm}"))?;
    let (named, told) = match place {
        Place::Template { at, words } => {
            // Beside the place a long text is cut, and lines are joined.
            let (wanted, found) = (joined(words), joined(ours));
            let start: String = wanted.chars().take(LEAST).collect();
            (ours.contains(at) && found.contains(&start), format!("{at}: {start}"))
        }
        Place::File(file) => (ours.contains(file), file.to_owned()),
        Place::Object { kind, name, field } => {
            let object = ours.contains(&format!("/{kind}/")) && ours.contains(&format!("/{name}: "));
            (object && ours.contains(&format!("{field}: ")), format!("{kind} {name}, field {field}"))
        }
    };
    ensure!(named, "Helm refuses {told}; EMCO says: {ours}");
    Ok(told)
}

/// Characters of a chart's words that have to be the same: no message is cut before.
const LEAST: usize = 60;

/// What Helm itself says, without its command line and its advice.
fn said(helm: &str) -> Result<&str> {
    let (_, said) = helm.split_once("Error: ").with_context(|| format!("Helm gives no reason: {helm}"))?;
    Ok(said.split("\n\nUse --debug flag").next().unwrap_or(said).trim())
}

fn place(said: &str) -> Option<Place<'_>> {
    if let Some((_, rest)) = said.split_once("YAML parse error on ") {
        return rest.split(": ").next().map(Place::File);
    }
    if let Some((_, rest)) = said.split_once(" error at (") {
        let (at, words) = rest.split_once("): ")?;
        return Some(Place::Template { at, words: words.trim() });
    }
    // An error without a call of `fail` or `required`: "template: PLACE: executing ...".
    if let Some((_, rest)) = said.split_once("template: ") {
        let (at, words) = rest.split_once(": ")?;
        return Some(Place::Template { at, words: words.trim() });
    }
    let (object, rest) = said.split_once(" is invalid: ")?;
    let (before, name) = object.strip_suffix('"')?.rsplit_once(" \"")?;
    let kind = before.rsplit([' ', ':']).next()?.split('.').next()?;
    let field = rest.trim_start_matches('[').split(": ").next()?;
    Some(Place::Object { kind, name, field })
}

fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAIL: &str = "helm template x failed: Error: execution error at (db/templates/NOTES.txt:8:4): \n\
        PASSWORD ERROR: give auth.password\n\nUse --debug flag to render out invalid YAML";
    const PATCH: &str = "helm upgrade x failed: Error: UPGRADE FAILED: cannot patch \"etcd\" with kind StatefulSet: \
        StatefulSet.apps \"etcd\" is invalid: spec: Forbidden: updates to statefulset spec are forbidden";

    #[test]
    fn a_chart_that_fails_is_refused_alike_with_its_place_and_words() {
        let ours =
            "app a: execution error at (db/templates/NOTES.txt:8:4): PASSWORD ERROR: give auth.password";
        assert!(same(FAIL, ours).is_ok());
        assert!(same(FAIL, &ours.replace(":8:", ":9:")).is_err());
        assert!(same(FAIL, &ours.replace("auth.", "")).is_err());
    }

    #[test]
    fn an_object_that_a_server_refuses_is_named_with_its_field() {
        let ours = "apps/StatefulSet/shop/etcd: a field cannot be changed: spec: Forbidden: updates";
        assert_eq!(same(PATCH, ours).unwrap(), "StatefulSet etcd, field spec");
        assert!(same(PATCH, &ours.replace("etcd", "web")).is_err());
        assert!(same(PATCH, &ours.replace("spec: ", "data: ")).is_err());
    }

    #[test]
    fn an_error_that_names_no_place_is_no_refusal_of_the_chart() {
        for helm in ["helm template x takes too long", "helm x failed: Error: Kubernetes cluster unreachable"]
        {
            assert!(same(helm, "anything").is_err(), "{helm}");
        }
    }
}
