//! Looking at plans from the command line: what waits, that nothing would change, and what is refused, each with its exit code.

use anyhow::Result;
use emco_e2e::bed::Bed;
use emco_e2e::operator::{chart, deployed, deployment};
use serde_json::json;

use super::looks::{EVERYWHERE, deploy};
use super::rig::{STAGE, run, run_as};
use super::rights::user;

/// Applies the deployment with another value of the app `note`, and more fields.
async fn edit(bed: &Bed, tenant: &str, key: &str, more: &str) -> Result<()> {
    let charts = [chart("note", "1.0.0", &[])?, chart("gate", "1.0.0", &[])?];
    let spec = format!("{EVERYWHERE}\noverrideValues: [{{app: note, values: {{key: {key}}}}}]\n{more}");
    bed.hub().kubectl().apply(&deployment(tenant, "till", &charts, &spec)).await.map(drop)
}

#[tokio::test]
async fn a_plan_is_shown_with_the_lines_that_differ_and_carried_out_later() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "plans", EVERYWHERE).await?;
        run(bed, &["plan", "plans/till"])
            .await?
            .is(0, &["plans/till: revision 1 runs, and nothing would change\n"]);
        edit(bed, "plans", "two", "desiredState: Planned").await?;
        let said = run(bed, &["plan", "dig/till", "-n", "plans"]).await?;
        said.is(
            2,
            &[
                "plans/till: revision 1 runs\nrevision 2 would come, digest ",
                "clusters: 0 gained, 2 changed, 0 lost\nobjects: 0 added, 2 changed, 0 removed\n",
                "└─ note on 2 clusters\n   └─ changes on acme/a, acme/b: 1 changed\n",
                "      ├─ ~ ConfigMap/plans/till-note\n",
                "      │     -  key: one\n      │     +  key: two\n",
                "      └─ acme/a would accept 1 object\n",
                "waits: 2 of 2 clusters ready; spec.desiredState is Planned",
            ],
        );
        let note = ["get", "cm", "till-note", "-n", "plans", "-o", "jsonpath={.data.key}"];
        for edge in ["a", "b"] {
            assert_eq!(bed.edge(edge).kubectl().run(&note).await?, "one", "a plan puts nothing anywhere");
        }
        let json = run(bed, &["plan", "plans/till", "--short", "-o", "json"]).await?.json();
        let object = &json["plan"]["apps"][0]["variants"][0]["objects"][0];
        assert_eq!(object, &json!({"what": "Changed", "object": "ConfigMap/plans/till-note"}), "{json:#}");
        edit(bed, "plans", "two", "").await?;
        deployed(bed, "plans", "till", 2).await?;
        run(bed, &["plan", "plans/till"]).await?.is(0, &["revision 2 runs, and nothing would change"]);
        let gone = ["wait", "--for=delete", "cm/dig-till-plan", "-n", "plans", "--timeout=30s"];
        bed.hub().kubectl().run(&gone).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_plan_that_is_refused_has_a_code_and_a_sentence_of_its_own() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "unplanned", EVERYWHERE).await?;
        let nowhere = "spec: {placement: {allOf: [{provider: acme, cluster: nowhere}]}}";
        let patch = ["patch", "dig", "till", "-n", "unplanned", "--type=merge", "-p", nowhere];
        bed.hub().kubectl().run(&patch).await?;
        let said = run(bed, &["plan", "unplanned/till"]).await?;
        said.is(4, &["unplanned/till: revision 1 runs\nrefused: Placed=False ", "nowhere"]);
        let json = run(bed, &["plan", "unplanned/till", "-o", "json"]).await?;
        assert_eq!((json.code, &json.json()["verdict"]), (Some(4), &json!("Refused")));
        run(bed, &["plan", "unplanned/nobody"]).await?.is(1, &["there is no deployment intent group nobody"]);
        run(bed, &["plan"]).await?.is(2, &["DEPLOYMENT"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_tenant_sees_the_names_of_a_plan_and_no_value() {
    let (bed, _) = STAGE.get().await.unwrap();
    bed.explain(async {
        deploy(bed, "glimpse", EVERYWHERE).await?;
        let secret = "overrideValues: [{app: note, values: {key: hidden-word}}]";
        let spec = format!("{EVERYWHERE}\n{secret}\ndesiredState: Planned");
        let charts = [chart("note", "1.0.0", &[])?, chart("gate", "1.0.0", &[])?];
        bed.hub().kubectl().apply(&deployment("glimpse", "till", &charts, &spec)).await?;
        let reads = "- {apiGroups: [emco.io], resources: ['*'], verbs: [get, list, watch]}\n";
        let maps = "- {apiGroups: [''], resources: [configmaps], verbs: [get, list, watch]}\n";
        let tenant = user(bed, "plan-tenant", &format!("{reads}{maps}")).await?;
        let said = run_as(bed, &tenant, &["plan", "dig/till", "-n", "glimpse"]).await?;
        said.is(
            2,
            &[
                "      ├─ ~ ConfigMap/glimpse/till-note\n",
                "      └─ acme/a would accept 1 object\n",
                "note: what changes inside of objects is shown to administrators of the hub",
            ],
        );
        assert!(!said.out.contains("hidden-word"), "{}", said.out);
        let reader = user(bed, "plan-reader", reads).await?;
        let said = run_as(bed, &reader, &["plan", "dig/till", "-n", "glimpse"]).await?;
        said.is(
            2,
            &[
                "   ├─ clusters: 2 changed\n",
                "   └─ such as: ConfigMap/glimpse/till-note\n",
                "note: every object is named in ConfigMap glimpse/dig-till-plan, which you may not get",
            ],
        );
        Ok(())
    })
    .await;
}
