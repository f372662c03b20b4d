//! Suspending, resuming and rolling back from the command line.

use anyhow::{Result, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::{Conditioned as _, types};
use emco_e2e::bed::Bed;
use emco_e2e::operator::wait;
use serde_json::json;

use super::looks::{EVERYWHERE, deploy};
use super::past::change;
use super::rig::{STAGE, run};

async fn reason(bed: &Bed, tenant: &str, wanted: &str) -> Result<()> {
    wait(bed, tenant, "till", |dig: &DeploymentIntentGroup| {
        let ready = dig.status.as_ref().and_then(|status| status.condition(types::READY));
        let said = ready.map(|ready| ready.reason.clone()).unwrap_or_default();
        if said == wanted { Ok(()) } else { Err(said) }
    })
    .await
}

#[tokio::test]
async fn suspend_resume_and_rollback_say_what_they_did_and_what_git_will_undo() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "holds", EVERYWHERE).await?;
        let values = "overrideValues: [{app: note, values: {key: two}}]";
        change(bed, "holds", &format!("{EVERYWHERE}\n{values}"), 2).await?;
        run(bed, &["suspend", "holds/till"]).await?.is(0, &["holds/till is suspended: nothing is written"]);
        reason(bed, "holds", "Suspended").await?;
        run(bed, &["suspend", "holds/till"]).await?.is(0, &["(it was so before)"]);
        let json = run(bed, &["resume", "holds/till", "-o", "json"]).await?.json();
        ensure!(json["changed"] == true && json["before"] == true && json["now"].is_null(), "{json:#}");
        reason(bed, "holds", "Ready").await?;
        run(bed, &["rollback", "holds/till", "9"])
            .await?
            .is(1, &["revision 9 is not stored; there are 2, 1"]);
        run(bed, &["rollback", "holds/till", "1", "--unpin"]).await?.is(2, &["cannot be used with"]);
        run(bed, &["rollback", "holds/till"]).await?.is(0, &["holds/till is pinned to revision 1"]);
        reason(bed, "holds", "Pinned").await?;
        run(bed, &["rollback", "holds/till"])
            .await?
            .is(1, &["no revision before 1 is stored; there are 2, 1"]);
        // From here on Flux has the field.
        let fields = json!({"apiVersion": "emco.io/v1alpha1", "kind": "DeploymentIntentGroup",
            "metadata": {"name": "till", "namespace": "holds"}, "spec": {"revision": 1}});
        let apply = ["apply", "--server-side", "--field-manager=kustomize-controller", "-f", "-"];
        bed.hub().kubectl().run_with(&apply, &fields.to_string()).await?;
        let words =
            ["holds/till follows its newest revision", "Flux has spec.revision in Git, and will set it back"];
        run(bed, &["rollback", "holds/till", "--unpin"]).await?.is(0, &words);
        reason(bed, "holds", "Ready").await?;
        run(bed, &["suspend", "holds/none"]).await?.is(1, &["there is no deployment intent group none"]);
        Ok(())
    })
    .await;
}
