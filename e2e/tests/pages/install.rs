//! `install.md`.

use anyhow::{Context as _, Result, ensure};
use emco_e2e::bed::Bed;
use emco_e2e::operator::{Operator, as_account, program};

use super::page::{Page, folder};

/// Installs on the hub, and runs the operator as the account that this made. (Images are not built and Pods not
/// run here.)
pub async fn follow(bed: &Bed) -> Result<Operator> {
    let mut page = Page::read(bed, "install.md")?;
    page.run("helm install emco-crds").await?;
    page.run("helm install emco charts/emco").await?;
    let said = page.run("kubectl -n emco-system rollout status").await?;
    ensure!(said.contains("successfully rolled out"), "{said}");
    // Tests of images and releases do this, and what the plug-in is installed from.
    page.take("make image IMAGE=registry.example.com/emco-operator:0.1.0 PUSH=yes")?;
    page.take("make image IMAGE=registry.example.com/emco-operator:0.1.0 ARCHES=")?;
    page.run("helm upgrade emco-crds").await?;
    page.run("helm upgrade emco charts/emco").await?;
    let image =
        ["get", "deployment", "emco-operator", "-n", "emco-system", "-o", "jsonpath={..containers[0].image}"];
    let image = bed.hub().kubectl().run(&image).await?;
    ensure!(image.starts_with("registry.example.com/emco-operator"), "an upgrade forgot the values: {image}");
    page.run_on("other", "kubectl apply --server-side -k config/default").await?;
    page.take("make dist")?;
    page.take("kubectl krew install")?;
    page.run("kubectl emco version").await?;
    let said = page.run("kubectl emco uninstall").await?;
    ensure!(said.contains("on the hub ") && said.contains("--release  what runs stays"), "{said}");
    let said = page.run("kubectl emco uninstall --keep").await?;
    ensure!(said.contains("helm uninstall emco --namespace emco-system --no-hooks"), "{said}");
    // What is deployed, registered and installed is still needed; other tests take all of it away.
    for command in [
        "helm uninstall emco",
        "kubectl emco uninstall --release --yes",
        "kubectl emco uninstall --remove --yes",
        "helm uninstall emco",
        "helm uninstall emco-crds",
        "kubectl delete -k config/crd",
        "kubectl delete namespace emco-system",
    ] {
        page.take(command)?;
    }
    page.take("make build")?;
    page.run_on("other", "kubectl apply --server-side -k config/crd").await?;
    page.take("export KUBECONFIG=hub.kubeconfig")?;
    from_source(bed, &page.take("target/image/emco-operator run")?).await?;
    page.end()?;
    Operator::start_as(bed, &program()?, as_account(bed).await?, String::new()).await
}

/// The program that was built, on a hub without an operator, with the flags of the page.
async fn from_source(bed: &Bed, command: &str) -> Result<()> {
    let folder = folder(bed)?;
    let hub = folder.join("hub.kubeconfig");
    std::fs::write(&hub, bed.edge("other").kubeconfig()?)?;
    let home = folder.display().to_string();
    let words: Vec<String> = command.split(' ').skip(1).map(|word| word.replace('~', &home)).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    // Ports that are free, on loopback.
    let kubeconfig = hub.display().to_string();
    let env = [
        ("KUBECONFIG", kubeconfig.as_str()),
        ("EMCO_LISTEN", "127.0.0.1:0"),
        ("EMCO_DEBUG_LISTEN", "127.0.0.1:0"),
        ("EMCO_PROBE_LISTEN", "127.0.0.1:0"),
    ];
    let process = bed.run("from-source", &program()?.canonicalize()?, &words, &env).await?;
    let lease = [
        "wait",
        "lease/emco-operator",
        "-n",
        "emco-system",
        "--for=jsonpath={.spec.holderIdentity}",
        "--timeout=60s",
    ];
    let kubectl = bed.edge("other").kubectl();
    let ready = async {
        kubectl
            .run(&["wait", "namespace/emco-system", "--for=jsonpath={.status.phase}=Active", "--timeout=60s"])
            .await?;
        kubectl.run(&[&lease[..1], &["--for=create"], &lease[1..4], &lease[5..]].concat()).await?;
        kubectl.run(&lease).await.map(drop)
    };
    emco_e2e::operator::unless_ended(&process, ready).await.context("the operator of the page")?;
    process.terminate().await?;
    process.ended().await;
    Ok(())
}
