//! Sets the stage: a hub and three edges of different sizes with the operator at work, and commands that people see.

use std::path::Path;

use anyhow::{Error, Result};
use emco_crds::conditions::types;
use emco_crds::{Cluster, Conditioned as _};
use emco_e2e::bed::{Bed, BedSpec, Capacity, NodeSpec, PlaneSpec};
use emco_e2e::operator::{Operator, root, unless_ended};
use emco_e2e::wait::wait_for;
use kube::Api;

use super::live::Live;
use super::screen::Screen;
use super::{SOON, sample};

/// Name, number of nodes, and what each has room for.
pub const EDGES: [(&str, u32, [&str; 3]); 3] = [
    ("berlin", 3, ["16", "64Gi", "110"]),
    ("oslo", 2, ["8", "32Gi", "110"]),
    ("porto", 1, ["4", "8Gi", "60"]),
];
/// The namespace of the Cluster objects.
const PROVIDER: &str = "acme";
/// Lines of the operator's log in a message.
const TAIL: usize = 20;

/// What the demo plays on.
pub struct Stage {
    pub bed: Bed,
    pub operator: Operator,
}

impl Stage {
    /// Starts everything but the first object.
    pub async fn start(screen: &Screen, operator: &Path) -> Result<Self> {
        screen.step("Starting four control planes: etcd, kube-apiserver, controllers, scheduler; kwok plays the nodes");
        let mut spec = BedSpec::default().with(PlaneSpec::light("hub", &[]));
        for (edge, nodes, [cpu, memory, pods]) in EDGES {
            let nodes = (1..=nodes).map(|number| {
                NodeSpec::new(&format!("{edge}-{number}")).capacity(Capacity::new(cpu, memory, pods))
            });
            spec = spec.with(PlaneSpec::edge(edge).nodes(nodes.collect()));
        }
        let bed = Bed::start(spec).await?;
        screen.say(&format!("hub     {}", bed.hub().url()));
        for (edge, nodes, [cpu, memory, _]) in EDGES {
            let plural = if nodes == 1 { "node" } else { "nodes" };
            let url = bed.edge(edge).url();
            screen.say(&format!("{edge:<7} {url}, {nodes} {plural} of {cpu} CPUs and {memory}"));
        }

        screen.step("Installing the kinds on the hub and starting the operator");
        let operator = Operator::start(&bed, operator).await?;
        screen.command("kubectl apply --server-side -k config/crd", operator.installed());
        let log = operator.process().log().display();
        screen.say(&format!("{} runs, its log is {log}", operator.command_line()));
        Ok(Self { bed, operator })
    }

    /// Makes the provider, the project and the clusters, and waits until every cluster was reached.
    pub async fn register_clusters(&self, screen: &Screen) -> Result<()> {
        screen.step("Registering the edges, and granting them to a project");
        self.apply(screen, sample::PLATFORM).await?;
        for (edge, ..) in EDGES {
            let file = self.bed.edge(edge).kubeconfig_file()?;
            let (secret, from) =
                (format!("{edge}-kubeconfig"), format!("--from-file=kubeconfig={}", file.display()));
            self.kubectl(screen, &["create", "secret", "generic", &secret, "-n", PROVIDER, &from]).await?;
        }
        let clusters: Api<Cluster> = self.bed.hub().api(PROVIDER).await?;
        let all_ready = wait_for(clusters, SOON, "all clusters to be Ready", |clusters| {
            let ready = |cluster: &Cluster| {
                cluster.status.as_ref().is_some_and(|status| status.is_true(types::READY))
            };
            let waiting: Vec<String> = EDGES
                .iter()
                .filter(|(edge, ..)| !clusters.get(&format!("{PROVIDER}/{edge}")).is_some_and(ready))
                .map(|(edge, ..)| {
                    let status = clusters
                        .get(&format!("{PROVIDER}/{edge}"))
                        .and_then(|cluster| cluster.status.as_ref());
                    let why = status.and_then(|status| status.condition(types::READY));
                    format!("{edge}: {}", why.map_or("no condition", |why| why.message.as_str()))
                })
                .collect();
            if waiting.is_empty() { Ok(()) } else { Err(waiting.join("; ")) }
        });
        unless_ended(self.operator.process(), all_ready).await?;
        self.kubectl(screen, &["get", "ecl", "-A"]).await
    }

    /// kubectl on the hub.
    pub async fn kubectl(&self, screen: &Screen, args: &[&str]) -> Result<()> {
        let output = self.bed.hub().kubectl().output(args, "").await?;
        screen
            .command(&format!("kubectl {}", args.join(" ")), &format!("{}{}", output.stdout, output.stderr));
        anyhow::ensure!(output.is_ok(), "kubectl {} failed: {}", args.join(" "), output.stderr.trim());
        Ok(())
    }

    /// kubectl on an edge.
    pub async fn kubectl_on(&self, screen: &Screen, edge: &str, args: &[&str]) -> Result<()> {
        let answer = self.bed.edge(edge).kubectl().run(args).await?;
        screen.command(&format!("KUBECONFIG={edge} kubectl {}", args.join(" ")), &answer);
        Ok(())
    }

    /// Applies a file of the repository to the hub.
    pub async fn apply(&self, screen: &Screen, file: &str) -> Result<()> {
        let answer = self.bed.hub().kubectl().apply_path(&root().join(file)).await?;
        screen.command(&format!("kubectl apply --server-side -f {file}"), &answer);
        Ok(())
    }

    /// Applies text to the hub, and shows it.
    pub async fn apply_text(&self, screen: &Screen, yaml: &str) -> Result<()> {
        let answer = self.bed.hub().kubectl().apply(yaml).await?;
        screen.command(&format!("kubectl apply --server-side -f - <<EOF\n{yaml}EOF"), &answer);
        Ok(())
    }

    /// Follows the deployment `shop` or whatever the project's only one is called.
    pub async fn watch<'a>(&'a self, screen: &'a Screen, project: &str, name: &str) -> Result<Live<'a>> {
        Live::start(self, screen, project, name).await
    }

    /// What may have caused a failure.
    pub async fn explain(&self, screen: &Screen, error: &Error) {
        screen.say(&format!("\nfailed: {error:#}\n"));
        let args = ["get", "eproj,ecl,lc,capp,cprof,dig", "-A", "-o", "wide"];
        match self.bed.hub().kubectl().output(&args, "").await {
            Ok(output) => screen.command(&format!("kubectl {}", args.join(" ")), &output.stdout),
            Err(error) => screen.say(&format!("kubectl does not answer: {error:#}")),
        }
        screen.say(&format!("\nthe end of the operator's log:\n{}", self.operator.process().log_tail(TAIL)));
    }

    /// Ends the operator as Kubernetes would, then all planes.
    pub async fn end(self) -> Result<()> {
        if self.operator.process().is_running() {
            self.operator.process().terminate().await?;
        }
        drop(self.operator);
        self.bed.end().await
    }
}
