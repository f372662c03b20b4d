//! Follows `kind.md` and `k3d.md`. Planes of the bed stand for the containers: what makes containers and images is compared with a
//! list, everything else is run as it is printed.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::{Bed, BedSpec};
use emco_e2e::operator::{Operator, as_account, chart, chart_map, program, root};

use super::kubeconfig;
use super::page::{Page, commands, folder, is_read_by_bash};

/// What podinfo is on the page.
const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: podinfo}
spec:
  selector: {matchLabels: {app: podinfo}}
  template:
    metadata: {labels: {app: podinfo}}
    spec: {containers: [{name: podinfo, image: example.com/podinfo}]}
";

const PLUG_IN: &str = "sudo install target/image/kubectl-emco /usr/local/bin/";

/// A tool that makes clusters of containers, with what of its page is not run.
struct Tool {
    page: &'static str,
    /// Contexts are called so, and by the cluster.
    name: &'static str,
    begin: &'static [&'static str],
    address: &'static str,
    end: &'static [&'static str],
}

const KIND: Tool = Tool {
    page: "kind.md",
    name: "kind",
    begin: &[
        "kind create cluster --name hub",
        "kind create cluster --name edge",
        "make image",
        "kind load docker-image emco-operator:0.1.0 --name hub",
    ],
    address: "address=$(docker inspect --format '{{.NetworkSettings.Networks.kind.IPAddress}}' edge-control-plane)",
    end: &["kind delete cluster --name edge", "kind delete cluster --name hub"],
};

const K3D: Tool = Tool {
    page: "k3d.md",
    name: "k3d",
    begin: &[
        "docker network create emco",
        "k3d cluster create hub --network emco --image rancher/k3s:v1.33.13-k3s2",
        "k3d cluster create edge --network emco --image rancher/k3s:v1.33.13-k3s2",
        "make image ENGINE=docker",
        "k3d image import emco-operator:0.1.0 --cluster hub",
    ],
    address: "address=$(docker inspect --format '{{.NetworkSettings.Networks.emco.IPAddress}}' k3d-edge-server-0)",
    end: &["k3d cluster delete edge", "k3d cluster delete hub", "docker network rm emco"],
};

async fn follow(bed: &Bed, tool: &Tool) -> Result<()> {
    let (hub, edge) = (format!("{}-hub", tool.name), format!("{}-edge", tool.name));
    let contexts = [("hub", "hub"), ("hub", hub.as_str()), ("edge", edge.as_str())];
    tokio::fs::write(folder(bed)?.join("all.kubeconfig"), kubeconfig(bed, &contexts)?).await?;
    let mut page = Page::read(bed, tool.page)?;
    for command in tool.begin {
        page.take_exactly(command).await?;
    }
    page.take_exactly(PLUG_IN).await?;
    let said = page.run(&format!("kubectl config use-context {hub}")).await?;
    ensure!(said.contains(&hub), "{said}");
    page.run("helm install emco-crds").await?;
    page.run("helm install emco charts/emco").await?;
    page.run("kubectl -n emco-system rollout status").await?;
    let operator = Operator::start_as(bed, &program()?, as_account(bed).await?, String::new()).await?;
    let pages = async {
        page.run("kubectl apply -f config/samples/first/1-platform.yaml").await?;
        page.take_exactly(tool.address).await?;
        let address = server(bed)?;
        let add = page.take(&format!("kubectl emco cluster add acme/edge-1 --context {edge}"))?;
        ensure!(add.ends_with(" --server https://$address:6443"), "{add}");
        let add = add.replace("https://$address:6443", &address);
        let said = page.execute(&hub, &add, 0).await?;
        ensure!(said.contains("acme/edge-1 is registered and ready"), "{said}");
        page.run("kubectl emco check").await?;
        page.take("kubectl apply -f config/samples/first/2-tenant.yaml")?;
        apply_without_the_internet(bed).await?;
        page.run("kubectl wait dig/hello -n demo --for=condition=Ready").await?;
        let said = page.run("kubectl emco get demo/hello").await?;
        ensure!(said.contains("apps/Deployment/demo/podinfo  Ready"), "{said}");
        let said = page.run(&format!("kubectl --context {edge} get pods -n demo")).await?;
        ensure!(said.contains("podinfo-"), "{said}");
        for command in tool.end {
            page.take_exactly(command).await?;
        }
        if tool.name == "kind" {
            with_podman(&mut page).await?;
        }
        page.end()
    };
    emco_e2e::operator::unless_ended(operator.process(), pages).await
}

/// What differs with Podman. The charts are there by now: they are upgraded by what the page installs them with.
async fn with_podman(page: &mut Page<'_>) -> Result<()> {
    for command in [
        "export KIND_EXPERIMENTAL_PROVIDER=podman",
        "kind create cluster --name hub",
        "kind create cluster --name edge",
        "make image ENGINE=podman",
        "podman save --output target/image/emco-operator.tar localhost/emco-operator:0.1.0",
        "kind load image-archive target/image/emco-operator.tar --name hub",
        PLUG_IN,
    ] {
        page.take_exactly(command).await?;
    }
    page.run("kubectl config use-context kind-hub").await?;
    for begins in ["helm install emco-crds ", "helm install emco charts/emco "] {
        let install = page.take(begins)?;
        page.execute("kind-hub", &install.replacen("helm install", "helm upgrade --install", 1), 0).await?;
    }
    let image = "kubectl get deployment emco-operator -n emco-system -o jsonpath={..containers[0].image}";
    let image = page.execute("kind-hub", image, 0).await?;
    let made = format!("localhost/emco-operator:{}", env!("CARGO_PKG_VERSION"));
    ensure!(image == made, "the chart runs {image}, and Podman makes {made}");
    page.run("kubectl -n emco-system rollout status").await?;
    page.run("kubectl apply -f config/samples/first/1-platform.yaml").await?;
    page.take_exactly(
        "address=$(podman inspect --format '{{.NetworkSettings.Networks.kind.IPAddress}}' edge-control-plane)",
    )
    .await
}

/// The address of the edge's API server.
fn server(bed: &Bed) -> Result<String> {
    let kubeconfig: serde_json::Value = serde_yaml::from_str(&bed.edge("edge").kubeconfig()?)?;
    let server = &kubeconfig["clusters"][0]["cluster"]["server"];
    server.as_str().map(str::to_owned).context("the kubeconfig names no server")
}

/// The tenant's file, with a chart from a ConfigMap in place of podinfo's repository.
async fn apply_without_the_internet(bed: &Bed) -> Result<()> {
    let podinfo = chart("podinfo", "6.9.2", &[("templates/web.yaml", WEB)])?;
    chart_map(bed, "demo", "charts", std::slice::from_ref(&podinfo)).await?;
    let file = std::fs::read_to_string(root().join("config/samples/first/2-tenant.yaml"))?;
    let (before, rest) = file.split_once("chart: {repository: ").context("another chart than before")?;
    let (_, after) = rest.split_once("}}").context("another chart than before")?;
    let key = podinfo.file_name();
    let file = format!("{before}chart: {{configMapRef: {{name: charts, key: {key}}}}}{after}");
    bed.hub().kubectl().apply(&file).await.map(drop)
}

async fn followed(tool: &Tool) {
    // Pods run on both.
    let bed = Bed::start(BedSpec::default().edges(&["hub", "edge"]).with_helm()).await.unwrap();
    bed.explain(Box::pin(follow(&bed, tool))).await;
}

#[tokio::test]
async fn the_page_on_kind_ends_with_pods_of_the_first_application() {
    followed(&KIND).await;
}

/// The page on k3d is the one on kind, but for what makes clusters: what is run of the one holds for the other.
#[tokio::test]
async fn the_page_on_k3d_has_the_commands_of_the_one_on_kind() {
    let of = |tool: &Tool| commands(&std::fs::read_to_string(root().join("docs").join(tool.page)).unwrap());
    let common = of(&KIND).into_iter().skip(KIND.begin.len()).take_while(|command| command != KIND.end[0]);
    let common = common.map(|command| {
        if command == KIND.address { K3D.address.to_owned() } else { command.replace("kind-", "k3d-") }
    });
    let own = |commands: &[&'static str]| commands.iter().map(|&one| one.to_owned()).collect::<Vec<_>>();
    let wanted: Vec<String> = own(K3D.begin).into_iter().chain(common).chain(own(K3D.end)).collect();
    let page: Vec<String> = of(&K3D).into();
    assert_eq!(page, wanted);
    assert!(page.iter().any(|command| command.starts_with("kubectl emco cluster add")), "{page:?}");
    for command in K3D.begin.iter().chain([&K3D.address]).chain(K3D.end) {
        is_read_by_bash(command).await.unwrap();
    }
}

mod soak {
    #[tokio::test]
    async fn the_page_on_k3d_ends_with_pods_of_the_first_application() {
        super::followed(&super::K3D).await;
    }
}
