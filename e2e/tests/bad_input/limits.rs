//! In: names as long as they may be, and as many objects as an app may have. Out: deployed and removed like all others.

use std::time::Duration;

use anyhow::ensure;
use emco_crds::DeploymentIntentGroup;
use emco_crds::conditions::types;
use emco_e2e::bed::serial;
use emco_e2e::operator::{SOON, cluster, deployed, deployed_within, deployment, ours, says, secret};
use emco_e2e::wait::wait_until_gone;

use super::{of_one_file, provider, start};

/// For thousands of objects on a slow machine.
const MANY: Duration = Duration::from_mins(5);

fn long(first: &str, length: usize) -> String {
    format!("{first}{}", "x".repeat(length - first.len()))
}

#[tokio::test]
async fn names_at_their_length_limits_are_deployed_and_removed() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}-note}\n\
                    data: {say: {{ .Values.say | quote }}}\n";
    let note = of_one_file(&long("app-", 43), template).unwrap();
    let project = long("limits-", 63);
    let bed = start(&project, std::slice::from_ref(&note)).await;
    let _turn = serial().await;
    bed.explain(async {
        let (owner, edge, name) = (long("provider-", 63), long("edge-", 63), long("dig-", 53));
        provider(bed, &owner, &project).await?;
        secret(bed, &owner, &edge, &bed.edge("d").kubeconfig()?).await?;
        bed.hub().kubectl().apply(&cluster(&owner, &edge)).await?;
        let (cloud, app, profile) = (long("cloud-", 40), long("composite-", 63), long("profile-", 63));
        let namespace = long("namespace-", 63);
        let more = format!(
            "
apiVersion: emco.io/v1alpha1
kind: LogicalCloud
metadata: {{name: {cloud}, namespace: {project}}}
spec: {{level: Admin, namespace: {namespace}}}
---
apiVersion: emco.io/v1alpha1
kind: CompositeProfile
metadata: {{name: {profile}, namespace: {project}}}
spec: {{apps: [{{app: {}, values: {{say: profile}}}}]}}
",
            note.name
        );
        bed.hub().kubectl().apply(&more).await?;
        let spec = format!(
            "placement: {{allOf: [{{provider: {owner}, cluster: {edge}}}]}}\nlogicalCloudRef: {{name: {cloud}}}\n\
             compositeProfileRef: {{name: {profile}}}"
        );
        let yaml = deployment(&project, &name, &[note], &spec)
            .replacen(&format!("metadata: {{name: {name},"), &format!("metadata: {{name: {app},"), 1)
            .replacen(&format!("compositeAppRef: {{name: {name}}}"), &format!("compositeAppRef: {{name: {app}}}"), 1);
        bed.hub().kubectl().apply(&yaml).await?;
        deployed(bed, &project, &name, 1).await?;
        let made = format!("ConfigMap/{namespace}/{name}-note");
        assert_eq!(ours(bed, "d", "configmaps", Some(&namespace)).await?, [made]);
        let say = ["get", "cm", &format!("{name}-note"), "-n", &namespace, "-o", "jsonpath={.data.say}"];
        ensure!(bed.edge("d").kubectl().run(&say).await? == "profile", "the profile is not in force");
        bed.hub().kubectl().run(&["delete", "dig", &name, "-n", &project, "--wait=false"]).await?;
        let digs = bed.hub().api::<DeploymentIntentGroup>(&project).await?;
        wait_until_gone(digs, &name, SOON).await?;
        assert_eq!(ours(bed, "d", "configmaps", Some(&namespace)).await?, Vec::<String>::new());
        for (kind, name) in [("capp", &app), ("cprof", &profile), ("lc", &cloud)] {
            bed.hub().kubectl().run(&["delete", kind, name, "-n", &project, "--timeout=60s"]).await?;
        }
        bed.hub().kubectl().run(&["delete", "projects.emco.io", &project, "--wait=false"]).await?;
        wait_until_gone(kube::Api::<emco_crds::Project>::all(bed.hub().client().await?), &project, SOON)
            .await?;
        bed.hub().kubectl().run(&["delete", "clusters.emco.io", &edge, "-n", &owner]).await?;
        ensure!(ours(bed, "d", "configmaps,namespaces", None).await?.is_empty());
        Ok(())
    })
    .await;
}

/// `soak` deploys as many as are allowed.
#[tokio::test]
async fn over_five_thousand_objects_in_an_app_are_refused_and_what_runs_stays() {
    Box::pin(allowed_and_one_more("more", 20)).await;
}

mod soak {
    #[tokio::test]
    async fn an_app_of_five_thousand_objects_is_deployed_and_one_more_is_refused() {
        Box::pin(super::allowed_and_one_more("many", 5000)).await;
    }
}

/// Deploys an app of `allowed` objects, then wants 5001 of it.
async fn allowed_and_one_more(project: &str, allowed: usize) {
    let template = "{{- range $i := until (int .Values.count) }}\n---\napiVersion: v1\nkind: ConfigMap\n\
                    metadata: {name: note-{{ $i }}}\ndata: {say: {{ $.Values.say | quote }}}\n{{- end }}\n";
    let notes = of_one_file("notes", template).unwrap();
    let bed = start(project, std::slice::from_ref(&notes)).await;
    let _turn = serial().await;
    bed.explain(async {
        let owner = format!("{project}-owner");
        provider(bed, &owner, project).await?;
        secret(bed, &owner, "edge", &bed.edge("d").kubeconfig()?).await?;
        bed.hub().kubectl().apply(&cluster(&owner, "edge")).await?;
        let with = |count: usize| {
            let spec = format!(
                "placement: {{allOf: [{{provider: {owner}, cluster: edge}}]}}\n\
                 overrideValues: [{{app: notes, values: {{count: {count}, say: hello}}}}]"
            );
            deployment(project, "notes", std::slice::from_ref(&notes), &spec)
        };
        bed.hub().kubectl().apply(&with(allowed)).await?;
        deployed_within(bed, project, "notes", 1, MANY).await?;
        ensure!(ours(bed, "d", "configmaps", Some(project)).await?.len() == allowed);
        bed.hub().kubectl().apply(&with(5001)).await?;
        let said = says::<DeploymentIntentGroup, _>(bed, project, "notes", types::RENDERED, "OutputTooLarge")
            .await?;
        ensure!(said.contains("makes 5001 objects for one cluster, more than 5000"), "{said}");
        ensure!(ours(bed, "d", "configmaps", Some(project)).await?.len() == allowed, "what runs stays");
        bed.hub().kubectl().run(&["delete", "dig", "notes", "-n", project, "--wait=false"]).await?;
        let digs = bed.hub().api::<DeploymentIntentGroup>(project).await?;
        wait_until_gone(digs, "notes", MANY).await?;
        assert_eq!(ours(bed, "d", "configmaps", Some(project)).await?, Vec::<String>::new());
        bed.hub().kubectl().run(&["delete", "projects.emco.io", project, "--wait=false"]).await?;
        wait_until_gone(kube::Api::<emco_crds::Project>::all(bed.hub().client().await?), project, SOON)
            .await?;
        bed.hub().kubectl().run(&["delete", "clusters.emco.io", "edge", "-n", &owner]).await?;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_plan_beyond_what_its_project_may_store_is_refused_and_what_runs_stays() {
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: note}\n\
                    data: {say: {{ .Values.say | quote }}, more: {{ repeat 200 (sha256sum .Values.say) | quote }}}\n";
    let note = of_one_file("note", template).unwrap();
    let bed = start("stored", std::slice::from_ref(&note)).await;
    bed.explain(async {
        let limited = |limit: &str| format!(r#"{{"spec":{{"limits":{{"storedBytes":"{limit}"}}}}}}"#);
        let limit = async |limit: &str| {
            let patch = limited(limit);
            bed.hub()
                .kubectl()
                .run(&["patch", "eproj", "stored", "--type=merge", "-p", &patch])
                .await
                .map(drop)
        };
        let saying = |say: &str| {
            let spec = format!(
                "placement: {{allOf: [{{provider: acme, cluster: a}}]}}\n\
                 overrideValues: [{{app: note, values: {{say: {say}}}}}]"
            );
            deployment("stored", "shop", std::slice::from_ref(&note), &spec)
        };
        bed.hub().kubectl().apply(&saying("one")).await?;
        deployed(bed, "stored", "shop", 1).await?;
        limit("1Ki").await?;
        bed.hub().kubectl().apply(&saying("two")).await?;
        let said = super::dig_says(bed, "stored", types::RENDERED, "OutputTooLarge").await?;
        super::has(
            &said,
            &["Project stored allows 1Ki", "spec.limits.storedBytes", "spec.revisionHistoryLimit"],
        );
        let say = ["get", "cm", "note", "-n", "stored", "-o", "jsonpath={.data.say}"];
        ensure!(bed.edge("a").kubectl().run(&say).await? == "one", "what runs stays");
        limit("1Mi").await?;
        deployed(bed, "stored", "shop", 2).await?;
        ensure!(bed.edge("a").kubectl().run(&say).await? == "two");
        // All deployments of the project together.
        let total = r#"{"spec":{"limits":{"totalStoredBytes":"1Ki"}}}"#;
        bed.hub().kubectl().run(&["patch", "eproj", "stored", "--type=merge", "-p", total]).await?;
        bed.hub().kubectl().apply(&saying("three")).await?;
        let said = super::dig_says(bed, "stored", types::RENDERED, "OutputTooLarge").await?;
        super::has(&said, &["Project stored allows 1Ki", "spec.limits.totalStoredBytes"]);
        ensure!(bed.edge("a").kubectl().run(&say).await? == "two", "what runs stays");
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn limits_of_a_project_are_kept_and_what_runs_stays() {
    let template = "{{- range $i := until (int .Values.count) }}\n---\napiVersion: v1\nkind: ConfigMap\n\
                    metadata: {name: {{ $.Release.Name }}-{{ $i }}}\ndata: {say: {{ $.Values.say | quote }}}\n{{- end }}\n";
    let notes = of_one_file("notes", template).unwrap();
    let project = "bounded";
    let bed = start(project, std::slice::from_ref(&notes)).await;
    bed.explain(async {
        let kubectl = bed.hub().kubectl();
        let limit = async |deployments: usize, objects: usize| {
            let patch = format!(
                r#"{{"spec":{{"limits":{{"deploymentIntentGroups":{deployments},"objectsPerApp":{objects}}}}}}}"#
            );
            kubectl.run(&["patch", "eproj", project, "--type=merge", "-p", &patch]).await.map(drop)
        };
        let apply = async |name: &str, count: usize, say: &str| {
            let spec = format!(
                "placement: {{allOf: [{{provider: acme, cluster: a}}]}}\n\
                 overrideValues: [{{app: notes, values: {{count: {count}, say: {say}}}}}]"
            );
            kubectl.apply(&deployment(project, name, std::slice::from_ref(&notes), &spec)).await.map(drop)
        };
        let refused = async |name: &str, type_: &str, reason: &str, parts: &[&str]| {
            let said = says::<DeploymentIntentGroup, _>(bed, project, name, type_, reason).await?;
            super::has(&said, parts);
            anyhow::Ok(())
        };
        let error = limit(2, 5001).await.unwrap_err().to_string();
        ensure!(error.contains("should be less than or equal to 5000"), "{error}");
        limit(2, 3).await?;
        for name in ["first", "second"] {
            apply(name, 2, "one").await?;
            deployed(bed, project, name, 1).await?;
        }
        apply("third", 2, "one").await?;
        let count = ["allows 2 deployment intent groups in namespace", "(spec.limits.deploymentIntentGroups)"];
        refused("third", types::RESOLVED, "TooManyDeployments", &count).await?;
        // Lowered below what runs.
        limit(1, 1).await?;
        let beyond = "--for=jsonpath={.status.conditions[?(@.type==\"Ready\")].message}=namespace bounded; it has 3 deployment \
                      intent groups, and spec.limits.deploymentIntentGroups allows 1: those that run stay";
        kubectl.run(&["wait", "eproj", project, beyond, "--timeout=60s"]).await?;
        apply("second", 2, "two").await?;
        deployed(bed, project, "second", 2).await?;
        apply("first", 3, "two").await?;
        let objects = ["app notes makes 3 objects for acme/a", "allows 1 (spec.limits.objectsPerApp)"];
        refused("first", types::RENDERED, "OutputTooLarge", &objects).await?;
        let named = |names: &[&str]| {
            names.iter().map(|name| format!("ConfigMap/{project}/{name}")).collect::<Vec<_>>()
        };
        let runs = ours(bed, "a", "configmaps", Some(project)).await?;
        assert_eq!(runs, named(&["first-0", "first-1", "second-0", "second-1"]), "what runs stays");
        // A place is free, and the objects are allowed.
        kubectl.run(&["delete", "dig", "second", "-n", project, "--wait=false"]).await?;
        wait_until_gone(bed.hub().api::<DeploymentIntentGroup>(project).await?, "second", SOON).await?;
        limit(2, 3).await?;
        deployed(bed, project, "first", 2).await?;
        deployed(bed, project, "third", 1).await?;
        let runs = ours(bed, "a", "configmaps", Some(project)).await?;
        assert_eq!(runs, named(&["first-0", "first-1", "first-2", "third-0", "third-1"]));
        Ok(())
    })
    .await;
}
