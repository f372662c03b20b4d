//! Commands on a cluster: logs, exec, Events and whatever else kubectl does there.

use emco_engine::identity::ClusterId;

use super::args::deployments::{EdgeArgs, ExecArgs, LogsArgs};
use super::hub;
use super::{Misused, Outcome};

pub mod account;
pub mod events;
mod family;
pub mod place;
pub mod through;
mod workload;

use account::{Account, NoCredential};
use workload::Workload;

/// `kubectl emco logs`.
pub async fn logs(args: LogsArgs) -> anyhow::Result<Outcome> {
    let (account, workload) = match workload::find(&args.of).await {
        Err(error) if error.is::<NoCredential>() => return through::logs(&args, error).await,
        found => found?,
    };
    account.kubectl(&logs_words(&args, &workload))
}

fn logs_words(args: &LogsArgs, workload: &Workload) -> Vec<String> {
    let mut words = vec!["logs".to_owned(), format!("--namespace={}", workload.namespace)];
    match &workload.selector {
        // Lines of several Pods name theirs; the default is five Pods.
        Some(selector) => words.extend([
            format!("--selector={selector}"),
            "--prefix".to_owned(),
            "--max-log-requests=50".to_owned(),
        ]),
        None => words.push(format!("pod/{}", workload.name)),
    }
    words.push(format!("--tail={}", args.tail));
    match &args.of.container {
        Some(container) => words.push(format!("--container={container}")),
        None => words.push("--all-containers".to_owned()),
    }
    let flags = [(args.follow, "--follow"), (args.previous, "--previous"), (args.timestamps, "--timestamps")];
    words.extend(flags.iter().filter(|(set, _)| *set).map(|(_, flag)| (*flag).to_owned()));
    words.extend(args.since.map(|since| format!("--since={}s", since.as_secs())));
    words
}

/// `kubectl emco exec`.
pub async fn exec(args: ExecArgs) -> anyhow::Result<Outcome> {
    let (account, workload) = match workload::find(&args.of).await {
        Err(error) if error.is::<NoCredential>() => return through::exec(&args, error).await,
        found => found?,
    };
    let mut words = vec![
        "exec".to_owned(),
        format!("--namespace={}", workload.namespace),
        format!("{}/{}", workload.kind.to_lowercase(), workload.name),
    ];
    words.extend(args.of.container.as_ref().map(|container| format!("--container={container}")));
    words.extend(
        [(args.stdin, "--stdin"), (args.tty, "--tty")]
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, f)| (*f).to_owned()),
    );
    words.push("--".to_owned());
    words.extend(args.command.iter().cloned());
    account.kubectl(&words)
}

/// `kubectl emco edge`.
pub async fn edge(args: EdgeArgs) -> anyhow::Result<Outcome> {
    let hub = hub::connect(&args.hub).await?;
    let id = ClusterId::parse(&args.cluster)
        .ok_or_else(|| Misused("write PROVIDER/CLUSTER, such as acme/berlin".to_owned()))?;
    let account = account::open(&hub, &id, None, &args.account).await?;
    account.kubectl(&args.words)
}

impl Account {
    /// Runs kubectl in the place of this program: its input, output and exit code are this program's.
    fn kubectl(&self, words: &[String]) -> anyhow::Result<Outcome> {
        Err(self.replace_by_kubectl(words))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::{Args, Command, DeploymentCommand};

    fn words(line: &[&str], selector: Option<&str>) -> String {
        let args = Args::try_parse_from([&["kubectl-emco", "logs", "shop/till"], line].concat()).unwrap();
        let Command::Deployment(DeploymentCommand::Logs(args)) = args.command else { panic!("no logs") };
        let workload = Workload {
            kind: "Deployment".to_owned(),
            name: "web".to_owned(),
            namespace: "shop".to_owned(),
            selector: selector.map(str::to_owned),
        };
        logs_words(&args, &workload).join(" ")
    }

    #[test]
    fn logs_of_a_workload_are_those_of_all_its_pods_and_containers() {
        assert_eq!(
            words(&[], Some("app=web")),
            "logs --namespace=shop --selector=app=web --prefix --max-log-requests=50 --tail=-1 --all-containers"
        );
        assert_eq!(words(&[], None), "logs --namespace=shop pod/web --tail=-1 --all-containers");
    }

    #[test]
    fn flags_of_logs_are_passed_on_to_kubectl() {
        let line = ["-c", "web", "--tail", "5", "--follow", "--previous", "--timestamps", "--since", "2m"];
        assert_eq!(
            words(&line, None),
            "logs --namespace=shop pod/web --tail=5 --container=web --follow --previous --timestamps --since=120s"
        );
    }
}
