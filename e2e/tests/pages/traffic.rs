//! `traffic.md`.

use anyhow::{Context as _, Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, root};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;

use super::page::{Page, folder, yaml};

const WORKLOAD: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}-{{ .Chart.Name }}}
spec:
  replicas: 0
  selector: {matchLabels: {app: {{ .Chart.Name }}}}
  template:
    metadata: {labels: {app: {{ .Chart.Name }}}}
    spec: {containers: [{name: c, image: example.com/c}]}
";
const SERVICE: &str = "apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name }}-{{ .Chart.Name }}}
spec:
  selector: {app: {{ .Chart.Name }}}
  ports: [{name: http, port: 9000, targetPort: 8080}]
";

fn packages() -> Result<[Package; 2]> {
    let catalog = [("templates/workload.yaml", WORKLOAD), ("templates/service.yaml", SERVICE)];
    Ok([chart("catalog", "1.0.0", &catalog)?, chart("ui", "1.0.0", &catalog[..1])?])
}

pub async fn follow(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let packages = packages()?;
    chart_map(bed, "shop", "traffic-charts", &packages).await?;
    let everywhere = "placement: {allOf: [{provider: acme, selector: {}}]}";
    let store =
        deployment("shop", "store", &packages, everywhere).replace("name: charts,", "name: traffic-charts,");
    kubectl.apply(&store).await?;
    deployed(bed, "shop", "store", 1).await?;
    let text = std::fs::read_to_string(root().join("docs/traffic.md"))?;
    let blocks = yaml(&text);
    let (intent, policy) = (*blocks.first().context("no intent")?, *blocks.get(1).context("no policy")?);
    std::fs::write(folder(bed)?.join("storefront.yaml"), intent)?;
    let mut page = Page::read(bed, "traffic.md")?;
    page.run("kubectl apply -f storefront.yaml").await?;
    page.run("kubectl wait tgi/storefront").await?;
    page.run("kubectl patch dig store").await?;
    deployed(bed, "shop", "store", 2).await?;
    let said = page.run("kubectl emco manifests shop/store").await?;
    ensure!(said.contains(policy.trim()), "the page shows another policy than is made: {said}");
    let said = page.run("kubectl emco reach shop/store").await?;
    for words in
        ["office", "any other pod of its namespace", "no rule of NetworkPolicy shop/store-storefront-catalog"]
    {
        ensure!(text.contains(words) && said.contains(words), "{words}: {said}");
    }
    page.run("kubectl patch dig store").await?;
    page.run("kubectl delete tgi storefront").await?;
    deployed(bed, "shop", "store", 3).await?;
    page.end()?;
    kubectl.run(&["delete", "dig", "store", "-n", "shop", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, "store", SOON).await
}
