//! In: the charts of this repository on a real hub. Out: Helm and our own engine make the same of them, and the operator does
//! its whole work with the rights that they give to its service account: none is missing, none is there for nothing.

mod in_use;
mod leave;
mod life;
mod members;
mod people;
mod render;
mod rights;
mod start;
mod values;

use std::collections::BTreeSet;

use anyhow::Result;
use emco_crds::Project;
use emco_e2e::bed::{Audit, Bed, BedSpec, Parts, PlaneSpec};
use emco_e2e::operator::{
    Operator, SOON, as_account, call, install_charts as install, program, project, root, wait,
};
use emco_e2e::programs::Program;
use emco_e2e::wait::wait_until_gone;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;

/// Nothing runs on the edge: what is deployed there is ready when it is there.
fn bed() -> BedSpec {
    BedSpec::default()
        .with(PlaneSpec::new("hub", Parts::Controllers).audit(Audit::All))
        .with(PlaneSpec::new("a", Parts::Controllers))
        .with_helm()
}

/// Changes values of the chart that is installed.
async fn upgrade(bed: &Bed, set: &str) -> Result<()> {
    let chart = root().join("charts/emco").display().to_string();
    let args =
        ["upgrade", "emco", &chart, "--namespace", "emco-system", "--reset-then-reuse-values", "--set", set];
    call(bed, bed.programs().path(Program::Helm)?, &args).await.map(drop)
}

/// A project that makes its namespace takes it along.
async fn namespaces_go_along(bed: &Bed) -> Result<()> {
    let made = "{apiVersion: emco.io/v1alpha1, kind: Project, metadata: {name: made}, spec: {}}";
    bed.hub().kubectl().apply(made).await?;
    let ready = ["wait", "--for=condition=Ready", "--timeout=60s", "projects.emco.io", "made"];
    bed.hub().kubectl().run(&ready).await?;
    bed.hub().kubectl().run(&["delete", "projects.emco.io", "made", "--wait=false"]).await?;
    wait_until_gone(Api::<Namespace>::all(bed.hub().client().await?), "made", SOON).await
}

/// A project whose namespace somebody deletes first lets go of it, too.
async fn namespaces_go_first(bed: &Bed) -> Result<()> {
    project(bed, "hasty").await?;
    wait(bed, "hasty", "default", |cloud: &emco_crds::LogicalCloud| {
        emco_e2e::operator::is(cloud.status.as_ref(), emco_crds::conditions::types::READY, "True")
    })
    .await?;
    bed.hub().kubectl().run(&["delete", "namespace", "hasty", "--wait=false"]).await?;
    bed.hub().kubectl().run(&["delete", "projects.emco.io", "hasty", "--wait=false"]).await?;
    wait_until_gone(Api::<Project>::all(bed.hub().client().await?), "hasty", SOON).await?;
    wait_until_gone(Api::<Namespace>::all(bed.hub().client().await?), "hasty", SOON).await
}

#[tokio::test]
async fn the_operator_works_with_exactly_the_rights_of_its_chart() {
    let bed = Bed::start(bed()).await.unwrap();
    bed.explain(Box::pin(async {
        render::helm_and_our_engine_agree(&bed).await?;
        render::wrong_values_are_refused_with_a_sentence(&bed).await?;
        let told = install(&bed).await?;
        // Packs are collected soon, so that it is seen with which rights.
        let soon = [("EMCO_UNREFERENCED_SECONDS", "2")];
        let account = as_account(&bed).await?;
        let operator = Operator::start_with(&bed, &program()?, account.clone(), told, &soon).await?;
        life::life(&bed).await?;
        // Another replica waits for the Lease, with the same rights.
        let standby = Operator::standby_as(&bed, &program()?, "standby", account.clone()).await?;
        rights::stolen(&bed, &account).await?;
        let of_people = async {
            people::roles(&bed).await?;
            people::policies(&bed).await
        };
        // Each has a project of its own, and waits for a cluster most of the time.
        let of_members = members::follow_the_project(&bed);
        tokio::try_join!(of_people, of_members, namespaces_go_along(&bed), namespaces_go_first(&bed))?;
        members::stay_in_projects(&bed, &account).await?;
        life::removal(&bed).await?;
        life::packs_are_collected(&bed).await?;
        standby.kill().await?;
        operator.kill().await?;
        let events =
            rights::everything_asked(&bed, &["syncshards", "projects", "namespaces", "leases"]).await?;
        assert_eq!(rights::refused(&events), BTreeSet::new(), "rights that are missing");
        let chart = root().join("charts/emco").display().to_string();
        let args = ["template", "emco", &chart, "--namespace", "emco-system", "--kube-version", "1.36.3"];
        let rendered = call(&bed, bed.programs().path(Program::Helm)?, &args).await?;
        rights::are_explained_and_used(&rendered, &events)?;
        Ok(())
    }))
    .await;
}
