//! Asks the operator for what the user may not read themselves: by a `DeploymentView`, which is taken away again.
//!
//! It is read by name until the answer is there: members may not list or watch `DeploymentViews`, so that nobody reads another one's.

use std::io::Read as _;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use emco_crds::deployment_intent_group::view::{Question, ViewOf, ViewState};
use emco_crds::fields::NameRef;
use emco_crds::names::manager;
use emco_crds::{DeploymentView, DeploymentViewSpec, DeploymentViewStatus};
use flate2::read::GzDecoder;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use rustix::rand::{GetRandomFlags, getrandom};
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::cli::hub::{Hub, is_forbidden};

/// Between two looks, at first and later.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// Until there is an answer.
const PATIENCE: Duration = Duration::from_secs(90);
/// Until the operator has begun, where nothing else is before it.
const UNSEEN: Duration = Duration::from_secs(20);
/// Clusters that one question names.
const MOST_CLUSTERS: usize = 64;
/// Largest answer, unpacked.
const LARGEST: u64 = 64 << 20;

/// The operator's answer about a deployment, by its namespace and name; nothing where the user may not ask.
pub async fn question<T: DeserializeOwned>(
    hub: &Hub,
    (namespace, deployment): &(String, String),
    question: Question,
) -> anyhow::Result<Option<T>> {
    if question.clusters.len() > MOST_CLUSTERS {
        bail!(
            "{} clusters are more than the operator is asked about at a time: name at most {MOST_CLUSTERS} with --cluster",
            question.clusters.len()
        );
    }
    let api = Api::<DeploymentView>::namespaced(hub.client.clone(), namespace);
    let runs = question.what == ViewOf::Exec;
    let spec = DeploymentViewSpec {
        deployment_intent_group_ref: NameRef { name: deployment.clone() },
        question,
        released: None,
    };
    let name = name()?;
    let params = PostParams { field_manager: Some(manager::CLI.to_owned()), ..PostParams::default() };
    match api.create(&params, &DeploymentView::new(&name, spec)).await {
        Ok(_) => {}
        // A hub of an earlier version has no such kind.
        Err(error) if is_forbidden(&error) || is_not_found(&error) => return Ok(None),
        Err(error) => return Err(hub.sentence(&error, "ask about", &format!("{namespace}/{deployment}"))),
    }
    let answer = answered(hub, &api, namespace, &name, runs).await;
    // The operator takes away what is left.
    let _ = api.delete(&name, &DeleteParams::default()).await;
    Ok(Some(unpacked(&answer?)?))
}

fn is_not_found(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

/// A name that nobody guesses.
fn name() -> anyhow::Result<String> {
    let mut bytes = [0_u8; 16];
    let mut filled = 0;
    while filled < bytes.len() {
        let (_, rest) = bytes.split_at_mut(filled);
        filled += getrandom(rest, GetRandomFlags::empty())
            .map_err(|error| anyhow!("the system gives no random bits: {error}"))?;
    }
    Ok(bytes.iter().fold("view-".to_owned(), |name, byte| format!("{name}{byte:02x}")))
}

/// Waits for the answer, and releases a command.
async fn answered(
    hub: &Hub,
    api: &Api<DeploymentView>,
    namespace: &str,
    name: &str,
    runs: bool,
) -> anyhow::Result<String> {
    if runs {
        let params = PatchParams { field_manager: Some(manager::CLI.to_owned()), ..PatchParams::default() };
        let release = Patch::Merge(json!({"spec": {"released": true}}));
        match api.patch(name, &params, &release).await {
            Ok(_) => {}
            Err(error) if is_forbidden(&error) => bail!(
                "you may not run commands in containers of namespace {namespace}: that takes the role Editor or Admin of its project"
            ),
            Err(error) => return Err(hub.sentence(&error, "release command", name)),
        }
    }
    let begun = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let found = api.get_opt(name).await.map_err(|error| hub.sentence(&error, "read", name))?;
        let view = found.context("the question was deleted before it was answered: ask again")?;
        let status = view.status.unwrap_or_default();
        match status.state {
            Some(ViewState::Answered) => return status.answer.context("the answer is empty"),
            Some(ViewState::Refused) => return Err(refusal(status)),
            None if begun.elapsed() > UNSEEN => bail!(
                "the operator has not looked at the question within {} s: it answers a few at a time, and `kubectl emco check` says whether \
                 it works",
                UNSEEN.as_secs()
            ),
            _ if begun.elapsed() > PATIENCE => {
                bail!("the operator has not answered within {} s", PATIENCE.as_secs())
            }
            _ => {}
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn refusal(status: DeploymentViewStatus) -> anyhow::Error {
    anyhow!("{}", status.message.unwrap_or_else(|| "the operator refuses, and does not say why".to_owned()))
}

fn unpacked<T: DeserializeOwned>(answer: &str) -> anyhow::Result<T> {
    let bytes = STANDARD.decode(answer).context("the operator's answer is no base64")?;
    let mut text = Vec::new();
    GzDecoder::new(bytes.as_slice())
        .take(LARGEST)
        .read_to_end(&mut text)
        .context("the operator's answer cannot be unpacked")?;
    serde_json::from_slice(&text)
        .context("the operator's answer is of another version: use a kubectl-emco of the operator's")
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn names_of_questions_are_long_and_differ() {
        let (one, other) = (name().unwrap(), name().unwrap());
        assert!(one.len() == 37 && one.starts_with("view-") && one != other, "{one} {other}");
    }

    #[test]
    fn an_answer_is_unpacked_or_said_to_be_of_another_version() {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(b"[1, 2]").unwrap();
        let packed = STANDARD.encode(encoder.finish().unwrap());
        assert_eq!(unpacked::<Vec<u8>>(&packed).unwrap(), [1, 2]);
        let said = unpacked::<String>(&packed).unwrap_err().to_string();
        assert!(said.contains("of another version"), "{said}");
        assert!(unpacked::<String>("?").is_err());
    }
}
