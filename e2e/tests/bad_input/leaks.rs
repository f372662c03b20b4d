//! Names that are no names, Secrets that no server takes, and servers that quote: refused without a value of a Secret.

use anyhow::{Context as _, Result, ensure};
use emco_crds::conditions::types;
use emco_crds::{CompositeProfile, DeploymentIntentGroup, LogicalCloud};
use emco_e2e::bed::{Bed, serial};
use emco_e2e::operator::{deployment, is, says, wait, without_rules_on_names};

use super::{EVERYWHERE, dig_says, has, of_one_file, start};

const PLANTED: &str = "planted-5c1e-";

/// A profile of project `namespace` that reads values from a ConfigMap of this name.
fn profile(namespace: &str, name: &str) -> String {
    format!(
        "
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {{name: shop, namespace: {namespace}}}
spec: {{apps: [{{app: web, valuesFrom: [{{kind: ConfigMap, name: {name:?}}}]}}]}}
"
    )
}

/// Everything on the hub that is no Secret, and what the operator logged.
async fn readable(bed: &Bed, namespace: &str) -> Result<String> {
    let kinds = "configmaps,events,dig,lc,capp,cprof,gai,appcontexts.emco.io,syncshards.emco.io";
    let mut all = String::new();
    for within in [namespace, "acme", "emco-system"] {
        all.push_str(&bed.hub().kubectl().run(&["get", kinds, "-n", within, "-o", "yaml"]).await?);
    }
    all.push_str(&std::fs::read_to_string(bed.log("operator")).context("the operator's log")?);
    Ok(all)
}

async fn not_shown(bed: &Bed, namespace: &str, texts: &[&str]) -> Result<()> {
    let all = readable(bed, namespace).await?;
    for text in texts {
        let line = all.lines().find(|line| line.contains(text));
        ensure!(line.is_none(), "{text} is shown: {}", line.unwrap_or_default());
    }
    Ok(())
}

#[tokio::test]
async fn a_name_that_begins_a_query_is_refused_when_it_is_applied() {
    let bed = start("queries", &[]).await;
    // Another test takes the rule out of the kind for a while.
    let _turn = serial().await;
    bed.explain(async {
        for name in ["?watch=true", "../../acme/secrets/a", "%2e%2e", "A"] {
            let output = bed.hub().kubectl().output(&["apply", "-f", "-"], &profile("queries", name)).await?;
            ensure!(!output.is_ok(), "{name} is taken");
            has(&format!("{output:?}"), &["name must be the name of an object: lower-case letters, digits"]);
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_stored_name_that_begins_a_query_is_refused_at_once() {
    let bed = start("stored-queries", &[]).await;
    let _turn = serial().await;
    bed.explain(async {
        let hub = bed.hub().kubectl();
        let bad = profile("stored-queries", "?watch=true");
        let probe = bad.replace("name: shop,", "name: probe,");
        let stored = async { hub.apply(&bad).await.map(drop) };
        without_rules_on_names(bed, "compositeprofiles.emco.io", &probe, stored).await?;
        let said =
            says::<CompositeProfile, _>(bed, "stored-queries", "shop", types::READY, "ConfigMapNotFound")
                .await?;
        has(&said, &["no ConfigMap can have the name \"?watch=true\""]);
        // Ratcheting: the operator's status was taken beside the stored name.
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_number_in_a_secret_is_refused_before_any_server_sees_it() {
    let template = "apiVersion: v1\nkind: Secret\nmetadata: {name: pin}\nstringData: {password: 90210417}\n";
    let web = of_one_file("web", template).unwrap();
    let bed = start("numbers", std::slice::from_ref(&web)).await;
    bed.explain(async {
        bed.hub().kubectl().apply(&deployment("numbers", "shop", &[web], EVERYWHERE)).await?;
        let said = dig_says(bed, "numbers", types::RENDERED, "TemplateError").await?;
        has(&said, &["web/templates/thing.yaml", "stringData key password is a number and no text"]);
        not_shown(bed, "numbers", &["90210417"]).await
    })
    .await;
}

const PINNED: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: pinned}
spec:
  selector: {matchLabels: {app: pinned}}
  template:
    metadata: {labels: {app: pinned}}
    spec:
      containers:
      - name: web
        image: example.com/web
        env: [{name: PIN, value: {{ .Values.pin }}}]
";

#[tokio::test]
async fn a_number_of_a_secret_in_an_environment_is_refused_without_its_value() {
    let web = of_one_file("web", PINNED).unwrap();
    let bed = start("pinned", std::slice::from_ref(&web)).await;
    bed.explain(async {
        let secret = "
apiVersion: v1
kind: Secret
metadata: {name: pin, namespace: pinned}
stringData: {values.yaml: 'pin: 90210417'}
---
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {name: pin, namespace: pinned}
spec: {apps: [{app: web, valuesFrom: [{kind: Secret, name: pin}]}]}
";
        bed.hub().kubectl().apply(secret).await?;
        let spec = format!("{EVERYWHERE}\ncompositeProfileRef: {{name: pin}}");
        bed.hub().kubectl().apply(&deployment("pinned", "shop", &[web], &spec)).await?;
        let failing = wait(bed, "pinned", "shop", |dig: &DeploymentIntentGroup| {
            let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
            let found = failing.iter().find(|one| one.message.contains("expected string")).cloned();
            found.ok_or_else(|| format!("failing: {failing:?}"))
        })
        .await?;
        has(&failing.message, &["env[name=\"PIN\"].value: expected string, got (withheld)"]);
        not_shown(bed, "pinned", &["90210417"]).await
    })
    .await;
}

#[tokio::test]
async fn an_admission_policy_that_quotes_a_secret_is_not_quoted() {
    let template = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: pin}}\nstringData: {{password: {PLANTED}value}}\n"
    );
    let web = of_one_file("web", &template).unwrap();
    let bed = start("quoted", std::slice::from_ref(&web)).await;
    bed.explain(async {
        let policy = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: quoting}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: quoted}}
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [secrets]}]
  validations: [{expression: 'false', messageExpression: \"'the password ' + string(object.data.password) + ' is weak'\"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: quoting}
spec: {policyName: quoting, validationActions: [Deny]}
";
        wait(bed, "quoted", "default", |cloud: &LogicalCloud| is(cloud.status.as_ref(), types::READY, "True"))
            .await?;
        for edge in ["a", "b"] {
            bed.edge(edge).kubectl().apply(policy).await?;
            let secret = "
apiVersion: v1
kind: Secret
metadata: {name: probe, namespace: quoted}
data: {password: cHJvYmU=}
";
            let tried = ["apply", "--dry-run=server", "-f", "-"];
            bed.edge(edge).kubectl().until(&tried, secret, false).await?;
        }
        bed.hub().kubectl().apply(&deployment("quoted", "shop", &[web], EVERYWHERE)).await?;
        let failing = wait(bed, "quoted", "shop", |dig: &DeploymentIntentGroup| {
            let failing = dig.status.as_ref().map(|status| status.failing.clone()).unwrap_or_default();
            let found = failing.iter().find(|one| one.message.contains("Secret quoted/pin")).cloned();
            found.ok_or_else(|| format!("failing: {failing:?}"))
        })
        .await?;
        has(&failing.message, &["is refused", "withheld"]);
        not_shown(bed, "quoted", &[PLANTED, "cGxhbnRlZC01YzFl"]).await?;
        for edge in ["a", "b"] {
            let gone = ["delete", "validatingadmissionpolicies,validatingadmissionpolicybindings", "quoting"];
            bed.edge(edge).kubectl().run(&gone).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_second_cloud_with_a_namespace_that_is_taken_is_refused_and_woken() {
    let bed = start("first-holder", &[]).await;
    start("second-holder", &[]).await;
    bed.explain(async {
        wait(bed, "first-holder", "default", |cloud: &LogicalCloud| {
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await?;
        let rival = "
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {name: rival, namespace: second-holder}
spec: {level: Admin, namespace: first-holder}
";
        bed.hub().kubectl().apply(rival).await?;
        let said =
            says::<LogicalCloud, _>(bed, "second-holder", "rival", types::READY, "NamespaceConflict").await?;
        has(&said, &["namespace first-holder on cluster acme/", "a logical cloud of another project"]);
        let hub = bed.hub().kubectl();
        let shards = hub.run(&[
            "get",
            "syncshards.emco.io",
            "-n",
            "second-holder",
            "-l",
            "emco.io/owner-name=rival",
            "-o",
            "name",
        ]);
        ensure!(shards.await?.trim().is_empty(), "nothing is targeted");
        wait(bed, "first-holder", "default", |cloud: &LogicalCloud| {
            let said = format!("{:?}", cloud.status.as_ref().map(|status| &status.conditions));
            let also = "is also wanted by a logical cloud of another project, which does not get it";
            if said.contains(also) && !said.contains("rival") { Ok(()) } else { Err(said) }
        })
        .await?;
        hub.run(&["delete", "eproj", "first-holder"]).await?;
        wait(bed, "second-holder", "rival", |cloud: &LogicalCloud| {
            is(cloud.status.as_ref(), types::READY, "True")
        })
        .await?;
        Ok(())
    })
    .await;
}
