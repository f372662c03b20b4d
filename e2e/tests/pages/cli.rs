//! `cli.md`.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{SOON, chart, chart_map, deployed, deployment, root};
use emco_e2e::package::Package;
use emco_e2e::wait::wait_until_gone;

use super::page::{Page, folder};

/// A workload that needs no Pod to be ready: none runs on this edge.
const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: example.com/web}]}
";

pub fn web() -> Result<Package> {
    let template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\ndata: {say: {{ .Values.say | quote }}}\n";
    // A test of a kind that runs without nodes.
    let smoke =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web-smoke, annotations: {helm.sh/hook: test}}\n";
    let files = [
        ("values.yaml", "say: one\n"),
        ("templates/note.yaml", template),
        ("templates/web.yaml", WEB),
        ("templates/tests/smoke.yaml", smoke),
    ];
    chart("web", "2.0.0", &files)
}

async fn say(bed: &Bed, revision: i64) -> Result<()> {
    let spec = format!(
        "placement: {{allOf: [{{provider: acme, selector: {{}}}}]}}\noverrideValues: [{{app: web, values: {{say: word-{revision}}}}}]"
    );
    bed.hub().kubectl().apply(&deployment("shop", "till", &[web()?], &spec)).await?;
    deployed(bed, "shop", "till", revision).await.map(drop)
}

/// The page shows what `check` prints where one of two clusters has no Secret; but for the address of the hub.
async fn checked(bed: &Bed, page: &mut Page<'_>) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let oslo = "{apiVersion: emco.io/v1alpha1, kind: Cluster, metadata: {name: oslo, namespace: acme}, \
                spec: {access: {kubeconfigSecretRef: {name: oslo-kubeconfig}}}}";
    kubectl.apply(oslo).await?;
    let reason = "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].reason}=SecretNotFound";
    kubectl.run(&["wait", "ecl/oslo", "-n", "acme", reason, "--timeout=60s"]).await?;
    let said = page.run_to("hub", "kubectl emco check", 3).await?;
    kubectl.run(&["delete", "ecl", "oslo", "-n", "acme"]).await?;
    let text = std::fs::read_to_string(root().join("docs/cli.md"))?;
    let shown = text.lines().skip_while(|line| *line != "$ kubectl emco check").skip(1);
    let shown: Vec<&str> = shown.take_while(|line| *line != "```").collect();
    let seen: Vec<&str> = said.lines().collect();
    ensure!(shown.len() == seen.len(), "{said}");
    for (shown, seen) in shown.iter().zip(&seen) {
        let address =
            |line: &str| line.starts_with("ok    hub").then(|| line.split(" at ").next().map(str::to_owned));
        ensure!(
            shown == seen || address(shown).is_some_and(|before| address(seen) == Some(before)),
            "{shown}\n{seen}"
        );
    }
    Ok(())
}

pub async fn follow(bed: &Bed) -> Result<()> {
    chart_map(bed, "shop", "charts", &[web()?]).await?;
    say(bed, 1).await?;
    say(bed, 2).await?;
    let mut page = Page::read(bed, "cli.md")?;
    let said = page.run("kubectl emco status shop/till || echo").await?;
    ensure!(!said.contains("not yet"), "{said}");
    checked(bed, &mut page).await?;
    // Whoever may list Clusters sees them as such, if one has these labels.
    let said = page.run("kubectl emco clusters -n shop").await?;
    ensure!(said.is_empty() || said.starts_with("PROVIDER  "), "{said}");
    let said = page.run("kubectl emco status shop/till").await?;
    ensure!(said.starts_with("shop/till  ") && said.contains("└─ web  1/1 cluster ready"), "{said}");
    page.run("kubectl emco status -A --state Failed --state Unreachable").await?;
    page.run_until("kubectl emco status shop/till --watch", "shop/till  ").await?;
    let said = page.run("kubectl emco get shop/till").await?;
    for line in [
        "└─ web",
        "   └─ acme/berlin  Ready  2/2 objects ready  revision 2",
        "      └─ apps/Deployment/shop/web  Ready",
    ] {
        ensure!(said.contains(line), "{line}: {said}");
    }
    page.run("kubectl emco get shop/till --cluster acme/berlin --app web -o wide").await?;
    let said = page.run("kubectl emco manifests shop/till --cluster acme/berlin --app web").await?;
    let shown =
        "---\n# app web, revision 2, on acme/berlin\napiVersion: v1\ndata:\n  say: word-2\nkind: ConfigMap\n";
    ensure!(said.starts_with(shown), "{said}");
    page.run("kubectl emco manifests shop/till --revision 1 -o json").await?;
    let said = page.run("kubectl emco manifests shop/till | grep").await?;
    ensure!(said == "image: example.com/web\n", "{said}");
    let said = page.run("kubectl emco history shop/till").await?;
    ensure!(said.contains("Running    Update") && said.contains("+0 ~1 -0           +0 ~1 -0"), "{said}");
    let create = ["wait", "--for=create", "cm/dig-till-2-explain", "-n", "shop", "--timeout=60s"];
    bed.hub().kubectl().run(&create).await?;
    let said = page.run("kubectl emco explain shop/till --app web").await?;
    ensure!(said.contains("web   acme/berlin   Chosen    allOf    -"), "{said}");
    let said = page.run("kubectl emco reconcile shop/till").await?;
    ensure!(said.starts_with("shop/till was looked at; ready: True (Ready): "), "{said}");
    page.run("kubectl emco reconcile capp shop/till").await?;
    page.run("kubectl emco reconcile cluster acme/berlin").await?;
    let said = page.run("kubectl emco wait shop/till --for=applied --timeout=5m").await?;
    ensure!(said == "shop/till is applied: 1 cluster has revision 2\n", "{said}");
    page.run("kubectl emco wait shop/till --for=ready").await?;
    page.run("kubectl emco wait shop/till --for=revision=2 -o json").await?;
    page.run("kubectl emco logs shop/till web --cluster acme/berlin --tail 20").await?;
    page.run("kubectl emco events shop/till --warnings").await?;
    page.run("kubectl emco edge acme/berlin get pods -n shop").await?;
    // It has no Pod here, which kubectl says, with its own code.
    page.run_to("hub", "kubectl emco exec shop/till web --cluster acme/berlin -- date -u", 1).await?;
    let said = page.run("kubectl emco diff shop/till --cluster acme/berlin").await?;
    ensure!(said.contains("acme/berlin, revision 2: no difference"), "{said}");
    // 3: something is not as asked for.
    let said = page.run_to("hub", "kubectl emco diff shop/till --revision 1", 3).await?;
    ensure!(said.contains("data.say: \"word-2\" -> \"word-1\""), "{said}");
    let said = page.run("kubectl emco adopt shop/till").await?;
    ensure!(said.ends_with("There is nothing to take over.\n"), "{said}");
    page.run("kubectl emco adopt shop/till --conflicts AdoptIfSame").await?;
    let said = page.run("kubectl emco test shop/till").await?;
    ensure!(said.starts_with("Succeeded  acme/berlin  web  ConfigMap/shop/web-smoke  "), "{said}");
    ensure!(said.ends_with("\nshop/till: 1 of 1 test passed\n"), "{said}");
    page.run("kubectl emco test shop/till --cluster acme/berlin --filter name=web-smoke --logs").await?;
    let said = page.run("kubectl emco edge acme/berlin delete pods,jobs -n shop").await?;
    ensure!(said.trim() == "No resources found", "{said}");
    let said = page.run("kubectl emco role shop/till").await?;
    let shown = "# What shop/till needs on clusters, of 2 stored revisions; kinds as acme/berlin serves them.\n\
                 apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata:\n  name: emco:shop:till\nrules:\n\
                 # ConfigMap/shop/note (app web)\n";
    ensure!(said.starts_with(shown), "{said}");
    page.run("kubectl emco role --project shop --by-name -o json").await?;
    std::fs::create_dir_all(folder(bed)?.join(".local/bin"))?;
    page.run("kubectl emco completion kubectl").await?;
    page.run("chmod +x").await?;
    page.end()?;
    bed.hub().kubectl().run(&["delete", "dig", "till", "-n", "shop", "--wait=false"]).await?;
    wait_until_gone(bed.hub().api::<DeploymentIntentGroup>("shop").await?, "till", SOON).await
}
