//! In: charts that are not there, are none, or make what cannot be applied. Out: the app, the file and the words of the edge.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::operator::{binary_map, chart_map, deployed, deployment, ours, wait};
use k8s_openapi::api::core::v1::ConfigMap;

use super::{EVERYWHERE, NOTE, app_says, dig_says, has, of_one_file, start};

#[tokio::test]
async fn a_chart_that_is_not_there_or_no_chart_is_named_and_its_arrival_is_noticed() {
    let note = of_one_file("web", NOTE).unwrap();
    let bed = start("nochart", &[]).await;
    bed.explain(async {
        bed.hub()
            .kubectl()
            .apply(&deployment("nochart", "shop", std::slice::from_ref(&note), EVERYWHERE))
            .await?;
        let message = app_says(bed, "nochart", "ChartNotFound").await?;
        has(&message, &["app web", "ConfigMap charts", "web-1.0.0.tgz"]);
        has(&dig_says(bed, "nochart", types::RESOLVED, "ChartNotReady").await?, &["web"]);

        let garbage = BTreeMap::from([(note.file_name(), b"this is no archive".to_vec())]);
        binary_map(bed, "nochart", "charts", garbage).await?;
        has(&app_says(bed, "nochart", "ChartInvalid").await?, &["app web", "ConfigMap charts"]);

        chart_map(bed, "nochart", "charts", &[note]).await?;
        deployed(bed, "nochart", "shop", 1).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn other_bytes_under_the_same_version_are_refused_and_what_runs_stays() {
    let note = of_one_file("web", NOTE).unwrap();
    let bed = start("swapped", std::slice::from_ref(&note)).await;
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        kubectl.apply(&deployment("swapped", "shop", std::slice::from_ref(&note), EVERYWHERE)).await?;
        deployed(bed, "swapped", "shop", 1).await?;
        let other = of_one_file("web", &NOTE.replace("say:", "said:"))?;
        chart_map(bed, "swapped", "charts", &[other]).await?;
        kubectl.run(&["annotate", "capp", "shop", "-n", "swapped", "emco.io/requestedAt=now"]).await?;
        let message = app_says(bed, "swapped", "ChartDigestChanged").await?;
        has(&message, &["app web", "the same version now has other bytes", "sha256:"]);
        has(
            &message,
            &["set spec.apps[web].chart.digest of CompositeApp shop", "`kubectl emco chart push FOLDER`"],
        );
        let map = bed.edge("a").api::<ConfigMap>("swapped").await?.get("note").await?;
        assert_eq!(map.data.context("no data")?.keys().collect::<Vec<_>>(), ["say"]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_error_in_a_template_names_the_file_of_the_chart_and_the_line() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: note\ndata:\n  port: {{ required \"say which port\" .Values.port | quote }}\n";
    let broken = of_one_file("web", template).unwrap();
    let bed = start("template", std::slice::from_ref(&broken)).await;
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        kubectl.apply(&deployment("template", "shop", std::slice::from_ref(&broken), EVERYWHERE)).await?;
        let message = dig_says(bed, "template", types::RENDERED, "TemplateError").await?;
        has(&message, &["app web", "web/templates/thing.yaml:6:", "say which port"]);
        let spec = format!("{EVERYWHERE}\noverrideValues: [{{app: web, values: {{port: '80'}}}}]");
        kubectl.apply(&deployment("template", "shop", &[broken], &spec)).await?;
        deployed(bed, "template", "shop", 1).await.map(drop)
    })
    .await;
}

#[tokio::test]
async fn a_manifest_that_the_edge_refuses_is_reported_in_the_words_of_the_edge() {
    let template = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {ports: [{port: 123456}]}\n";
    let broken = of_one_file("web", template).unwrap();
    let bed = start("refused", std::slice::from_ref(&broken)).await;
    bed.explain(async {
        bed.hub().kubectl().apply(&deployment("refused", "shop", &[broken], EVERYWHERE)).await?;
        let failing = wait(bed, "refused", "shop", |dig: &DeploymentIntentGroup| {
            let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
            if failing.len() == 2 { Ok(failing) } else { Err(format!("failing: {failing:?}")) }
        })
        .await?;
        for one in failing {
            assert_eq!((one.app.as_deref(), one.reason.as_str()), (Some("web"), "Invalid"), "{one:?}");
            has(
                &one.message,
                &["Service", "spec.ports[0].port: Invalid value", "must be between 1 and 65535"],
            );
            // It might be of a Secret.
            assert!(!one.message.contains("123456"), "{one:?}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn two_apps_that_make_the_same_object_are_refused_with_both_names() {
    let charts = ["one", "other"].map(|name| of_one_file(name, NOTE).unwrap());
    let bed = start("double", &charts).await;
    bed.explain(async {
        bed.hub().kubectl().apply(&deployment("double", "shop", &charts, EVERYWHERE)).await?;
        let message = dig_says(bed, "double", types::RENDERED, "DuplicateResource").await?;
        has(&message, &["apps one and other", "ConfigMap", "note"]);
        ensure!(ours(bed, "a", "configmaps", Some("double")).await?.is_empty());
        Ok(())
    })
    .await;
}
