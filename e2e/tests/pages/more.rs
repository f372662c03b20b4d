//! Pages with a few commands each: `gitops.md`, `charts.md`, `troubleshooting.md` and `observability.md`.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::deployed;
use serde_json::{Value, json};
use tokio::process::Command;

use super::page::{Page, folder};

/// Applies a tenant's folder as whoever has no GitOps does. Argo CD is not there: only its ConfigMap.
pub async fn gitops(bed: &Bed, tenant: &str) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    let folder = folder(bed)?.join("tenant");
    std::fs::create_dir(&folder)?;
    std::fs::write(folder.join("shop.yaml"), tenant)?;
    kubectl.run(&["create", "namespace", "argocd"]).await?;
    kubectl.run(&["create", "configmap", "argocd-cm", "-n", "argocd"]).await?;
    let mut page = Page::read(bed, "gitops.md")?;
    page.run("until kubectl apply").await?;
    page.run("kubectl wait dig --all -n shop").await?;
    page.run("kubectl patch configmap argocd-cm").await?;
    page.end()
}

pub async fn charts(bed: &Bed) -> Result<()> {
    let mut page = Page::read(bed, "charts.md")?;
    let said = page.run("kubectl get capp shop -n shop").await?;
    // A chart of a ConfigMap has no commit.
    ensure!(said.starts_with("storefront 1.2.0  sha256:") && said.trim().len() == 89, "{said}");
    // An edit of the folder, with the version as it is.
    let values = folder(bed)?.join("storefront/values.yaml");
    std::fs::write(values, "turn: 2\n")?;
    let said = page.run("kubectl emco chart push ./storefront -n shop").await?;
    let takes = "CompositeApp shop/shop takes it: spec.apps[].chart.digest is set of app storefront\n";
    let stored = "storefront 1.2.0 is now in ConfigMap shop/storefront, key chart.tgz: ";
    ensure!(said.starts_with(stored) && said.ends_with(takes), "{said}");
    deployed(bed, "shop", "shop", 2).await?;
    page.end()
}

/// The page speaks of a third revision.
pub async fn troubleshooting(bed: &Bed) -> Result<()> {
    let values = json!([{"app": "storefront", "values": {"turn": 3}}]);
    let patch = json!({"spec": {"overrideValues": values}}).to_string();
    bed.hub().kubectl().run(&["patch", "dig", "shop", "-n", "shop", "--type=merge", "-p", &patch]).await?;
    deployed(bed, "shop", "shop", 3).await?;
    let mut page = Page::read(bed, "troubleshooting.md")?;
    if Command::new("zstd").arg("--version").output().await.is_ok() {
        let said = page.run("kubectl get cm dig-shop-3-explain").await?;
        let said: Value = serde_json::from_str(&said).context(said)?;
        let first = &said["apps"][0]["clusters"][0];
        ensure!(first["cluster"] == "acme/berlin" && first["verdict"] == "Chosen", "{said}");
    } else {
        // Not every machine can unpack it.
        page.take("kubectl get cm dig-shop-3-explain")?;
    }
    let packs = page.run("kubectl get appcontext dig-shop-3").await?;
    ensure!(packs.starts_with("ConfigMap emco-pack-"), "{packs}");
    // They speak of a loss that did not happen, and of another object: nothing comes of them.
    page.run("kubectl annotate dig shop -n shop --overwrite emco.io/confirm").await?;
    page.run("kubectl annotate dig shop -n shop --overwrite emco.io/abandon").await?;
    page.end()
}

/// The Prometheus operator is not there: only its kinds.
pub async fn observability(bed: &Bed) -> Result<()> {
    let kubectl = bed.hub().kubectl();
    for (kind, plural) in [("ServiceMonitor", "servicemonitors"), ("PrometheusRule", "prometheusrules")] {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let version =
            json!({"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.monitoring.coreos.com")},
            "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "versions": [version],
                "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()}},
        });
        kubectl.apply(&definition.to_string()).await?;
    }
    kubectl.run(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]).await?;
    let mut page = Page::read(bed, "observability.md")?;
    page.run("helm upgrade emco charts/emco").await?;
    page.run("kubectl apply --server-side -k config/observability").await?;
    // In a copy: the folder of the reader leads to that of the repository.
    let (rules, copy) = (folder(bed)?.join("config/observability"), folder(bed)?.join("copied"));
    std::fs::create_dir_all(&copy)?;
    for file in ["rules.yaml", "prometheusrule.yaml"] {
        std::fs::copy(rules.join(file), copy.join(file))?;
    }
    let sed = page.take("sed -i 's#https://emco.example.com/book#")?;
    page.execute("hub", &sed.replace("config/observability/", "copied/"), 0).await?;
    for file in ["rules.yaml", "prometheusrule.yaml"] {
        let text = std::fs::read_to_string(copy.join(file))?;
        ensure!(text.contains("https://docs.example.org/emco/observability.html#"), "{text}");
        ensure!(!text.contains("https://emco.example.com/"), "{text}");
    }
    page.end()?;
    let made = ["get", "servicemonitor/emco-operator", "prometheusrule/emco", "cm/emco-dashboard"];
    kubectl.run(&[&made[..], &["-n", "emco-system"]].concat()).await.map(drop)
}
