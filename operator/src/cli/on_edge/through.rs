//! Logs and commands by way of the operator: what a member asks for, and what the operator does for it.

use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use emco_controllers::api::{Method, Request};
use emco_controllers::remote::Executed;
use emco_controllers::remote::wire::ReadLimits;
use emco_crds::deployment_intent_group::view::{Question, ViewOf};
use emco_engine::identity::ClusterId;
use emco_engine::path::ApiPath;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, LogParams};
use kube::{Api, Client, ResourceExt as _};
use serde::{Deserialize, Serialize};

use super::account;
use super::family::{Family, One};
use super::place::{self, Placed};
use super::workload::{self, Workload};
use crate::cli::args::deployments::{AccountArgs, ExecArgs, LogsArgs, WorkloadArgs};
use crate::cli::diff::edge;
use crate::cli::hub::{self, Hub};
use crate::cli::orphans::some;
use crate::cli::output::printable;
use crate::cli::stored::ask;
use crate::cli::stored::lend::PoolLender;
use crate::cli::{Outcome, print};

/// Pods of one workload whose logs are read.
const MOST_PODS: u32 = 20;
/// Lines of one container.
const MOST_LINES: i64 = 2000;
/// Bytes of one container, and of all together.
const MOST_BYTES: i64 = 256 << 10;
const LARGEST: usize = 1 << 20;
/// Output of a command, and time for it.
const OUTPUT: ReadLimits = ReadLimits { bytes: 256 << 10, time: Duration::from_secs(60) };
/// Containers that a message names.
const NAMED: usize = 8;
/// Names the container that is meant where none is named, as kubectl reads it.
const DEFAULT_CONTAINER: &str = "kubectl.kubernetes.io/default-container";

/// Logs of a workload.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Written {
    text: String,
    /// Sentences on what is left out.
    notes: Vec<String>,
}

/// Output of a command.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    stdout: String,
    stderr: String,
    /// Its exit code; none where it was not waited for.
    code: Option<u8>,
}

/// Asks for logs. `refused` says why the user does not read them directly.
pub async fn logs(args: &LogsArgs, refused: anyhow::Error) -> anyhow::Result<Outcome> {
    if args.follow {
        bail!("{refused}; the operator hands logs on, and none that go on: leave out --follow");
    }
    let question = Question {
        what: ViewOf::Logs,
        tail: (args.tail >= 0).then(|| args.tail.min(MOST_LINES)),
        since_seconds: args.since.and_then(|since| i64::try_from(since.as_secs().max(1)).ok()),
        previous: args.previous.then_some(true),
        timestamps: args.timestamps.then_some(true),
        ..of(&args.of)
    };
    let Some(written) = asked::<Written>(&args.of, question).await? else { return Err(refused) };
    print(&written.text)?;
    for note in &written.notes {
        eprintln!("{}", printable(note));
    }
    Ok(Outcome::AsWanted)
}

/// Asks for a command to be run. `refused` says why the user does not run it directly.
pub async fn exec(args: &ExecArgs, refused: anyhow::Error) -> anyhow::Result<Outcome> {
    if args.stdin || args.tty {
        bail!(
            "{refused}; the operator runs commands without standard input and terminal: leave out -i and -t"
        );
    }
    let question = Question { what: ViewOf::Exec, command: args.command.clone(), ..of(&args.of) };
    let Some(ran) = asked::<Ran>(&args.of, question).await? else { return Err(refused) };
    print(&ran.stdout)?;
    eprint!("{}", printable(&ran.stderr));
    match ran.code {
        Some(code) => Ok(Outcome::Exited(code)),
        None => bail!(
            "the command did not end within {} s, or wrote more than {} KiB: above is its output until then, and it may run on",
            OUTPUT.time.as_secs(),
            OUTPUT.bytes / 1024
        ),
    }
}

fn of(args: &WorkloadArgs) -> Question {
    Question { workload: args.workload.clone(), container: args.container.clone(), ..Question::default() }
}

async fn asked<T: serde::de::DeserializeOwned>(
    args: &WorkloadArgs,
    question: Question,
) -> anyhow::Result<Option<T>> {
    let hub = hub::connect(&args.named.hub).await?;
    let placed = place::find(&hub, &args.named).await?;
    let (id, _) = placed.one(args.cluster.as_deref())?;
    let question = Question { clusters: vec![id.to_string()], ..question };
    ask::question(&hub, &placed.on_hub, question).await
}

/// Reads logs, in the operator.
pub async fn written(
    hub: &Hub,
    placed: &Placed,
    id: &ClusterId,
    question: &Question,
) -> anyhow::Result<Written> {
    let (client, workload) = found(hub, placed, id, question).await?;
    let pods = pods(&client, placed, &workload).await?;
    let api = Api::<Pod>::namespaced(client, &placed.namespace);
    let mut written = Written::default();
    for pod in &pods {
        let name = pod.name_any();
        for container in containers(pod, question.container.as_deref())? {
            let params = LogParams {
                container: Some(container.clone()),
                limit_bytes: Some(MOST_BYTES),
                previous: question.previous.unwrap_or(false),
                since_seconds: question.since_seconds,
                tail_lines: Some(question.tail.unwrap_or(MOST_LINES)),
                timestamps: question.timestamps.unwrap_or(false),
                ..LogParams::default()
            };
            let place = format!("pod/{name}/{container}");
            match api.logs(&name, &params).await {
                Ok(text) => written.add(workload.selector.as_ref().map(|_| place.as_str()), &text),
                Err(error) => written.notes.push(format!("{place}: {:#}", edge::failed(&error))),
            }
            if written.text.len() >= LARGEST {
                written.notes.push("there is more: ask with --tail, --since or --container".to_owned());
                return Ok(written);
            }
        }
    }
    if pods.is_empty() {
        written.notes.push(format!("No resources found in {} namespace.", placed.namespace));
    }
    Ok(written)
}

impl Written {
    /// Adds lines, with their place as kubectl writes it.
    fn add(&mut self, place: Option<&str>, text: &str) {
        for line in text.lines() {
            if let Some(place) = place {
                self.text.push_str(&format!("[{place}] "));
            }
            self.text.push_str(line);
            self.text.push('\n');
        }
    }
}

/// Runs a command, in the operator.
pub async fn ran(
    hub: &Hub,
    lender: &PoolLender,
    placed: &Placed,
    id: &ClusterId,
    question: &Question,
) -> anyhow::Result<Ran> {
    let (client, workload) = found(hub, placed, id, question).await?;
    let pods = pods(&client, placed, &workload).await?;
    let is_running = |pod: &&Pod| {
        let status = pod.status.as_ref();
        status.and_then(|status| status.phase.as_deref()) == Some("Running")
    };
    let pod = pods.iter().find(is_running).with_context(|| {
        format!("no Pod of {}/{} runs on cluster {id}", workload.kind.to_lowercase(), workload.name)
    })?;
    let container = container(pod, question.container.as_deref())?;
    let path = ApiPath::core(&placed.namespace, "pods").then(&pod.name_any()).then("exec");
    let mut request = Request::new(Method::Get, path)
        .query("container", container)
        .query("stdout", "true")
        .query("stderr", "true")
        .acting_as(lender.account.as_deref());
    for word in &question.command {
        request = request.query("command", word);
    }
    let uid = placed.clusters.get(id).and_then(Option::as_deref);
    let executed = lender.edge(id, uid)?.exec(request, OUTPUT).await;
    ended(&executed.map_err(|error| anyhow!("the cluster refuses: {error}"))?)
}

/// Reads how a command ended.
fn ended(executed: &Executed) -> anyhow::Result<Ran> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = match &executed.status {
        None => None,
        Some(status) if status["status"] == "Success" => Some(0),
        Some(status) => {
            let causes = status["details"]["causes"].as_array().map_or(&[][..], Vec::as_slice);
            let code = causes.iter().find(|cause| cause["reason"] == "ExitCode");
            let code = code.and_then(|cause| cause["message"].as_str()?.parse::<u8>().ok());
            let why = status["message"].as_str().unwrap_or("the cluster gives no reason");
            Some(code.with_context(|| format!("the command did not run: {why}"))?)
        }
    };
    Ok(Ran { stdout: text(&executed.stdout), stderr: text(&executed.stderr), code })
}

async fn found(
    hub: &Hub,
    placed: &Placed,
    id: &ClusterId,
    question: &Question,
) -> anyhow::Result<(Client, Workload)> {
    let uid = placed.clusters.get(id).and_then(Option::as_deref);
    let client = account::open(hub, id, uid, &AccountArgs::default()).await?.client;
    let workload = workload::on_cluster(&client, placed, id, question.workload.as_deref()).await?;
    Ok((client, workload))
}

/// Pods of a workload. A selector takes Pods of others, too: theirs are left out.
async fn pods(client: &Client, placed: &Placed, workload: &Workload) -> anyhow::Result<Vec<Pod>> {
    let api = Api::<Pod>::namespaced(client.clone(), &placed.namespace);
    let pods = match &workload.selector {
        Some(selector) => {
            let params = ListParams::default().labels(selector).limit(MOST_PODS);
            api.list(&params).await.map_err(|error| edge::failed(&error))?.items
        }
        None => {
            api.get_opt(&workload.name).await.map_err(|error| edge::failed(&error))?.into_iter().collect()
        }
    };
    let mut family = Family::of(client.clone(), placed);
    let mut ours = Vec::new();
    for pod in pods {
        let one = One { api_version: "v1".to_owned(), kind: "Pod".to_owned(), name: pod.name_any() };
        if family.has(one).await? {
            ours.push(pod);
        }
    }
    Ok(ours)
}

/// The containers of a Pod that are meant, those of its start first.
fn containers(pod: &Pod, named: Option<&str>) -> anyhow::Result<Vec<String>> {
    let spec = pod.spec.as_ref();
    let of_start = spec.and_then(|spec| spec.init_containers.as_ref()).into_iter().flatten();
    let others = spec.into_iter().flat_map(|spec| &spec.containers);
    let all: Vec<String> = of_start.chain(others).map(|container| container.name.clone()).collect();
    match named {
        None => Ok(all),
        Some(named) if all.iter().any(|one| one == named) => Ok(vec![named.to_owned()]),
        Some(named) => {
            bail!("Pod {} has no container {named}: there are {}", pod.name_any(), some(&all, NAMED))
        }
    }
}

/// The container that a command is run in.
fn container(pod: &Pod, named: Option<&str>) -> anyhow::Result<String> {
    let usual = pod.annotations().get(DEFAULT_CONTAINER).map(String::as_str);
    if let Some(named) = named.or(usual) {
        return containers(pod, Some(named)).map(|_| named.to_owned());
    }
    let first = pod.spec.as_ref().and_then(|spec| spec.containers.first());
    first.map(|container| container.name.clone()).context("the Pod has no container")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(containers: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "web-0"}, "spec": containers})).unwrap()
    }

    #[test]
    fn lines_have_the_place_that_kubectl_gives_them() {
        let mut written = Written::default();
        written.add(Some("pod/web-0/web"), "one\ntwo");
        written.add(None, "three\n");
        assert_eq!(written.text, "[pod/web-0/web] one\n[pod/web-0/web] two\nthree\n");
    }

    #[test]
    fn a_command_is_run_in_the_first_container_unless_one_is_named() {
        let pod = pod(&json!({
            "initContainers": [{"name": "prepare"}], "containers": [{"name": "web"}, {"name": "beside"}],
        }));
        assert_eq!(containers(&pod, None).unwrap(), ["prepare", "web", "beside"]);
        assert_eq!(container(&pod, None).unwrap(), "web");
        assert_eq!(container(&pod, Some("beside")).unwrap(), "beside");
        let said = container(&pod, Some("db")).unwrap_err().to_string();
        assert_eq!(said, "Pod web-0 has no container db: there are prepare, web, beside");
        let usual = json!({DEFAULT_CONTAINER: "beside"});
        let pod = Pod { metadata: serde_json::from_value(json!({"annotations": usual})).unwrap(), ..pod };
        assert_eq!(container(&pod, None).unwrap(), "beside");
    }

    #[test]
    fn the_code_of_a_command_is_read_and_a_failure_of_others_is_an_error() {
        let of = |status: Value| {
            let (stdout, status) = (b"out".to_vec(), Some(status));
            Executed { stdout, status, ..Executed::default() }
        };
        assert_eq!(ended(&of(json!({"status": "Success"}))).unwrap().code, Some(0));
        let causes = json!({"causes": [{"reason": "ExitCode", "message": "42"}]});
        let failed = json!({"status": "Failure", "reason": "NonZeroExitCode", "details": causes});
        let ran = ended(&of(failed)).unwrap();
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(42), "out"));
        let said = ended(&of(json!({"status": "Failure", "message": "no shell"}))).unwrap_err().to_string();
        assert_eq!(said, "the command did not run: no shell");
        assert_eq!(ended(&Executed { cut: true, ..Executed::default() }).unwrap().code, None);
    }
}
