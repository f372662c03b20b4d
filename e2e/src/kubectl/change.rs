//! Changes and deletes single objects as kubectl does, without a program.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::header::CONTENT_TYPE;
use kube::Client;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::kinds::served;

/// Until an object is gone whose deletion is waited for, where no time is given; and how often that is asked.
const GONE: Duration = Duration::from_mins(2);
const ASK_EVERY: Duration = Duration::from_millis(200);
const DEFAULT: &str = "default";

/// What is to be done to one object.
#[derive(Debug, PartialEq)]
pub(super) struct Change {
    /// Of the object.
    path: String,
    /// As kubectl prints it.
    object: String,
    what: What,
}

#[derive(Debug, PartialEq)]
enum What {
    /// A patch of this type, in this manager's name.
    Patch { kind: &'static str, manager: &'static str, body: Value },
    /// Whether it need not exist, and how long its end is waited for.
    Delete { ignore: bool, wait: Option<Duration> },
}

/// Arguments by what they are.
#[derive(Default)]
struct Words<'a> {
    plain: Vec<&'a str>,
    namespace: Option<&'a str>,
    body: Option<&'a str>,
    json: bool,
    ignore: bool,
    overwrite: bool,
    wait: Option<Duration>,
}

impl<'a> Words<'a> {
    /// None for arguments that are not known here.
    fn of(args: &[&'a str]) -> Option<Self> {
        let mut words = Self { wait: Some(GONE), ..Self::default() };
        let mut rest = args.iter();
        while let Some(&word) = rest.next() {
            match word {
                "-n" => words.namespace = Some(*rest.next()?),
                "-p" => words.body = Some(*rest.next()?),
                "--type=merge" => words.json = false,
                "--type=json" => words.json = true,
                "--wait=false" => words.wait = None,
                "--ignore-not-found" => words.ignore = true,
                "--overwrite" => words.overwrite = true,
                _ => match word.strip_prefix("--timeout=") {
                    Some(time) => {
                        words.wait = Some(Duration::from_secs(time.strip_suffix('s')?.parse().ok()?));
                    }
                    None if word.starts_with('-') => return None,
                    None => words.plain.push(word),
                },
            }
        }
        Some(words)
    }

    /// The one object, and what follows its name.
    fn object(&self) -> Option<(String, String, &[&'a str])> {
        let (kind, name, rest) = match self.plain.split_first()? {
            (first, rest) if first.contains('/') => {
                let (kind, name) = first.split_once('/')?;
                (kind, name, rest)
            }
            (kind, rest) => {
                let (name, rest) = rest.split_first()?;
                (*kind, *name, rest)
            }
        };
        let (place, own) = served(kind, Some(self.namespace.unwrap_or(DEFAULT)))?;
        Some((format!("{place}/{name}"), format!("{}/{name}", own.to_lowercase()), rest))
    }
}

/// What these arguments of kubectl say, where it can be done by a request.
pub(super) fn of(args: &[&str]) -> Option<Change> {
    let (verb, args) = args.split_first()?;
    let words = Words::of(args)?;
    let (path, object, rest) = words.object()?;
    let what = match *verb {
        "patch" if rest.is_empty() && args.iter().any(|arg| arg.starts_with("--type=")) => What::Patch {
            kind: if words.json { "application/json-patch+json" } else { "application/merge-patch+json" },
            manager: "kubectl-patch",
            body: serde_yaml::from_str(words.body?).ok()?,
        },
        "label" => marks("labels", "kubectl-label", rest, words.overwrite)?,
        "annotate" => marks("annotations", "kubectl-annotate", rest, words.overwrite)?,
        "delete" if rest.is_empty() => What::Delete { ignore: words.ignore, wait: words.wait },
        _ => return None,
    };
    Some(Change { path, object, what })
}

/// Sets `KEY=VALUE`, and takes `KEY-` away. Whether a mark is there already is kubectl's to find out, where it may not be overwritten.
fn marks(field: &str, manager: &'static str, marks: &[&str], overwrite: bool) -> Option<What> {
    let mut values = serde_json::Map::new();
    for mark in marks {
        match mark.split_once('=') {
            Some((key, value)) if overwrite => values.insert(key.to_owned(), json!(value)),
            Some(_) => return None,
            None => values.insert(mark.strip_suffix('-')?.to_owned(), Value::Null),
        };
    }
    let body = json!({"metadata": {field: values}});
    (!marks.is_empty()).then_some(What::Patch { kind: "application/merge-patch+json", manager, body })
}

/// Does it; answers a line as kubectl prints it.
pub(super) async fn carry_out(kubeconfig: &Path, change: Change) -> Result<String> {
    let (client, _) = super::apply::connect(kubeconfig).await?;
    let Change { path, object, what } = change;
    match what {
        What::Patch { kind, manager, body } => {
            let request = http::Request::patch(format!("{path}?fieldManager={manager}"))
                .header(CONTENT_TYPE, kind)
                .body(serde_json::to_vec(&body)?)?;
            client.request::<Value>(request).await.context(object.clone())?;
            Ok(format!("{object} changed\n"))
        }
        What::Delete { ignore, wait } => {
            let Some(uid) = uid(&client, &path).await? else {
                if ignore {
                    return Ok(String::new());
                }
                bail!("{object} is not found");
            };
            let options = json!({
                "kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background",
            });
            let request = http::Request::delete(&path)
                .header(CONTENT_TYPE, "application/json")
                .body(serde_json::to_vec(&options)?)?;
            match client.request::<Value>(request).await {
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                answer => drop(answer.context(object.clone())?),
            }
            if let Some(limit) = wait {
                gone(&client, &path, &uid, limit).await.context(object.clone())?;
            }
            Ok(format!("{object} deleted\n"))
        }
    }
}

/// Of the object that is there.
async fn uid(client: &Client, path: &str) -> Result<Option<Value>> {
    match client.request::<Value>(http::Request::get(path).body(Vec::new())?).await {
        Ok(object) => Ok(Some(object["metadata"]["uid"].clone())),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error).with_context(|| path.to_owned()),
    }
}

async fn gone(client: &Client, path: &str, before: &Value, limit: Duration) -> Result<()> {
    let end = Instant::now() + limit;
    while uid(client, path).await?.is_some_and(|now| now == *before) {
        if Instant::now() > end {
            bail!("timed out: it is still there after {} s", limit.as_secs());
        }
        sleep(ASK_EVERY).await;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(args: &str) -> Option<Change> {
        of(&args.split(' ').collect::<Vec<_>>())
    }

    #[test]
    fn single_objects_are_changed_by_a_request_and_the_rest_is_kubectls() {
        let path = "/apis/emco.io/v1alpha1/namespaces/shop/deploymentintentgroups/till";
        let end = said("delete dig till -n shop --wait=false").unwrap();
        assert_eq!((end.path.as_str(), end.what), (path, What::Delete { ignore: false, wait: None }));
        let patch = said("patch dig/till -n shop --type=merge -p spec:{}").unwrap();
        assert_eq!(patch.path, path);
        let label = said("label ecl a -n acme --overwrite tier=edge old-").unwrap();
        let body = json!({"metadata": {"labels": {"tier": "edge", "old": null}}});
        assert!(matches!(label.what, What::Patch { body: is, .. } if is == body));
        for other in [
            "delete dig,capp till -n shop",
            "delete dig --all -n shop",
            "delete dig till kiosk -n shop",
            "delete things.example.com one",
            "patch dig till -n shop -p spec:{}",
            "label ecl a -n acme tier=edge",
            "label ecl -n acme a b tier=edge",
            "get dig till -n shop",
        ] {
            assert_eq!(said(other), None, "{other}");
        }
    }
}
