//! Stores names that today's kinds refuse: as a release before the rules on names had them, or a hand that took a rule away.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use crate::bed::Bed;

/// Begins the messages of the rules on names.
const RULE: &str = "name must be the name of an object";
const APPLY: [&str; 5] = ["apply", "--server-side", "--dry-run=server", "-f", "-"];

/// Does `work` while this kind has no rules on the names of other objects. `bad` has a name that only then is taken.
///
/// # Errors
/// The kind cannot be replaced, or `work` failed; the rules are back in both cases.
pub async fn without_rules_on_names<T>(
    bed: &Bed,
    kind: &str,
    bad: &str,
    work: impl Future<Output = Result<T>>,
) -> Result<T> {
    let hub = bed.hub().kubectl();
    let mut strict: Value = serde_json::from_str(&hub.run(&["get", "crd", kind, "-o", "json"]).await?)?;
    strict["metadata"] = json!({"name": kind});
    strict.as_object_mut().context("an object")?.remove("status");
    let mut loose = strict.clone();
    ensure!(loosen(&mut loose) > 0, "{kind} has no rule on names");
    hub.run_with(&["replace", "-f", "-"], &loose.to_string()).await?;
    let done = async {
        hub.until(&APPLY, bad, true).await?;
        work.await
    };
    let done = done.await;
    hub.run_with(&["replace", "-f", "-"], &strict.to_string()).await?;
    hub.until(&APPLY, bad, false).await?;
    done
}

/// Takes the rules on names out of a schema. Returns how many there were.
fn loosen(schema: &mut Value) -> usize {
    let mut found = 0;
    match schema {
        Value::Object(map) => {
            if let Some(Value::Array(rules)) = map.get_mut("x-kubernetes-validations") {
                let before = rules.len();
                rules.retain(|rule| !rule["message"].as_str().is_some_and(|text| text.starts_with(RULE)));
                found += before - rules.len();
                if rules.is_empty() {
                    map.remove("x-kubernetes-validations");
                }
            }
            found += map.values_mut().map(loosen).sum::<usize>();
        }
        Value::Array(list) => found += list.iter_mut().map(loosen).sum::<usize>(),
        _ => {}
    }
    found
}
