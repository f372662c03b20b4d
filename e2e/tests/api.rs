//! In: a real API server, the definitions, all samples. Out: what it accepts, refuses, adds and prints.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use emco_e2e::bed::{Bed, BedSpec, SharedBed};
use kube::Api;
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use serde::Deserialize as _;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

static BED: SharedBed = SharedBed::new(BedSpec::bare_hub);
static INSTALLED: OnceCell<Result<(), String>> = OnceCell::const_new();

/// Namespaces that samples name.
const NAMESPACES: [&str; 4] = ["acme", "shop", "demo", "full"];

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The bed with all definitions installed the way people do it.
async fn hub() -> Result<&'static Bed> {
    let bed = BED.get().await?;
    let install = || async {
        let crds = root().join("config/crd").display().to_string();
        let kubectl = bed.hub().kubectl();
        let applied = kubectl.output(&["apply", "--server-side", "-k", &crds], "").await;
        let applied = applied.map_err(|e| format!("{e:#}"))?;
        if !applied.is_ok() || !applied.stderr.is_empty() {
            return Err(format!("the definitions are not accepted silently:\n{}", applied.stderr));
        }
        let established = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
        kubectl.run(&established).await.map_err(|e| format!("{e:#}"))?;
        for namespace in NAMESPACES {
            let namespace = format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}");
            kubectl.apply(&namespace).await.map_err(|e| format!("{e:#}"))?;
        }
        Ok(())
    };
    match INSTALLED.get_or_init(install).await {
        Ok(()) => Ok(bed),
        Err(error) => bail!("{error}"),
    }
}

/// YAML files of a folder of the repository, by name.
fn files(folder: &str) -> Result<BTreeMap<String, String>> {
    let folder = root().join(folder);
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(&folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|n| n.to_str()).unwrap_or_default().to_owned();
        if path.extension().is_some_and(|e| e == "yaml") && name != "kustomization" {
            files.insert(name, std::fs::read_to_string(&path)?);
        }
    }
    Ok(files)
}

fn documents(text: &str) -> Result<Vec<Value>> {
    serde_yaml::Deserializer::from_str(text).map(|d| Ok(Value::deserialize(d)?)).collect()
}

/// The collection an object belongs to.
fn api(client: &kube::Client, object: &Value) -> Result<Api<DynamicObject>> {
    let kind = object["kind"].as_str().context("no kind")?;
    let namespaced = object["metadata"]["namespace"].as_str();
    let resource = if kind == "Namespace" {
        ApiResource::erase::<k8s_openapi::api::core::v1::Namespace>(&())
    } else {
        let crd =
            emco_crds::all().into_iter().find(|c| c.spec.names.kind == kind).context(kind.to_owned())?;
        ApiResource {
            group: crd.spec.group,
            version: emco_crds::names::VERSION.to_owned(),
            api_version: emco_crds::names::API_VERSION.to_owned(),
            kind: kind.to_owned(),
            plural: crd.spec.names.plural,
        }
    };
    Ok(match namespaced {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    })
}

async fn apply(client: &kube::Client, object: &Value, dry_run: bool) -> Result<kube::Result<DynamicObject>> {
    let name = object["metadata"]["name"].as_str().context("no name")?;
    let params = PatchParams { dry_run, ..PatchParams::apply("test").force() };
    Ok(api(client, object)?.patch(name, &params, &Patch::Apply(object)).await)
}

/// What `part` says, `whole` says too; `whole` may say more.
fn contains(whole: &Value, part: &Value) -> bool {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            part.iter().all(|(k, v)| whole.get(k).is_some_and(|w| contains(w, v)))
        }
        (Value::Array(whole), Value::Array(part)) => {
            whole.len() == part.len() && whole.iter().zip(part).all(|(w, p)| contains(w, p))
        }
        _ => whole == part,
    }
}

#[tokio::test]
async fn valid_samples_are_accepted_and_stored_as_written() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let client = bed.hub().client().await?;
        for folder in
            ["config/samples", "config/samples/generated", "config/samples/first", "crds/tests/full"]
        {
            for (name, text) in files(folder)? {
                for document in documents(&text)? {
                    let stored = apply(&client, &document, false)
                        .await?
                        .with_context(|| format!("{folder}/{name}"))?;
                    let (stored, spec) = (serde_json::to_value(stored)?, &document["spec"]);
                    assert!(
                        spec.is_null() || contains(&stored["spec"], spec),
                        "{folder}/{name}:\n{spec:#}\nwas stored as\n{:#}",
                        stored["spec"]
                    );
                }
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn full_statuses_are_stored_as_written() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let client = bed.hub().client().await?;
        // Each is an object of its own: what a Cluster is written through never changes.
        for (number, (name, text)) in files("crds/tests/full")?.into_iter().enumerate() {
            let object = format!("with-status-{number}");
            for mut document in documents(&text)? {
                document["metadata"]["name"] = json!(object);
                apply(&client, &document, false).await?.with_context(|| name.clone())?;
                let params = PatchParams::apply("test").force();
                let api = api(&client, &document)?;
                let stored = api.patch_status(&object, &params, &Patch::Apply(&document)).await;
                let stored = serde_json::to_value(stored.with_context(|| name.clone())?)?;
                assert!(
                    contains(&stored["status"], &document["status"]),
                    "{name}:\n{:#}\nwas stored as\n{:#}",
                    document["status"],
                    stored["status"]
                );
            }
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn invalid_samples_are_refused_with_the_sentence_they_name_and_no_other() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let client = bed.hub().client().await?;
        let samples = files("config/samples/invalid")?;
        assert!(samples.len() > 50, "{}", samples.len());
        for (name, text) in samples {
            let expected = text.lines().next().and_then(|l| l.strip_prefix("# expect: "));
            let expected = expected.with_context(|| format!("{name} does not say what it expects"))?;
            let all = documents(&text)?;
            let (last, before) = all.split_last().context("empty")?;
            for accepted in before {
                apply(&client, accepted, false)
                    .await?
                    .with_context(|| format!("{name}: the first document"))?;
            }
            let Err(kube::Error::Api(refusal)) = apply(&client, last, true).await? else {
                bail!("{name} was accepted");
            };
            let causes = refusal.details.iter().flat_map(|d| &d.causes);
            let sentences: Vec<_> = causes.map(|c| c.message.trim_start_matches("Invalid value: ")).collect();
            assert_eq!(sentences, [expected], "{name}: {}", refusal.message);
            assert_eq!(refusal.code, 422, "{name}");
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn a_rollout_of_more_than_all_clusters_is_refused_with_its_field() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let client = bed.hub().client().await?;
        let rollout = |size: &str, failures: &str| json!({"waves": [{"name": "one", "size": size}], "maxFailures": failures});
        for (rollout, field) in [(rollout("101%", "1"), "waves[0].size"), (rollout("50%", "101%"), "maxFailures")] {
            let object = json!({
                "apiVersion": emco_crds::names::API_VERSION, "kind": "DeploymentIntentGroup",
                "metadata": {"name": "too-much", "namespace": "demo"},
                "spec": {"compositeAppRef": {"name": "hello"}, "placement": {"allOf": [{"selector": {}}]}, "rollout": rollout},
            });
            let Err(kube::Error::Api(refusal)) = apply(&client, &object, true).await? else {
                bail!("{field} was accepted");
            };
            let said = format!("spec.rollout.{field}: Invalid value: \"101%\"");
            assert!(refusal.code == 422 && refusal.message.contains(&said), "{}", refusal.message);
        }
        Ok(())
    })
    .await;
}

/// Everything a GitOps tool would compare: a default more here is a difference there.
#[tokio::test]
async fn a_deployment_intent_group_gets_these_defaults_and_no_other() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let written: Value = json!({
            "compositeAppRef": {"name": "hello"},
            "placement": {"allOf": [{"selector": {"matchLabels": {"tier": "edge"}}}]},
            "overrideValues": [{"app": "podinfo", "values": {}}],
            "intents": [{"kind": "HardwareIntent", "name": "gpu"}],
            "rollout": {"waves": [{"name": "canary", "size": "10%"}]},
        });
        let object = json!({
            "apiVersion": emco_crds::names::API_VERSION,
            "kind": "DeploymentIntentGroup",
            "metadata": {"name": "defaults", "namespace": "demo"},
            "spec": written,
        });
        let stored = serde_json::to_value(apply(&bed.hub().client().await?, &object, false).await??)?;
        let mut expected = object["spec"].clone();
        let added = json!({
            "desiredState": "Instantiated",
            "logicalCloudRef": {"name": "default"},
            "readyClusters": "100%",
            "revisionHistoryLimit": 10,
            "sync": {"drift": "Correct", "conflicts": "Fail", "immutableFields": "Fail", "prune": "AfterReady"},
            "unreachable": {"action": "Wait"},
        });
        for (key, value) in added.as_object().into_iter().flatten() {
            expected[key] = value.clone();
        }
        assert_eq!(stored["spec"], expected);
        Ok(())
    })
    .await;
}

/// An empty value in a template of somebody's must not become an object that the operator cannot read.
#[tokio::test]
async fn null_means_the_default() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let object = json!({
            "apiVersion": emco_crds::names::API_VERSION,
            "kind": "DeploymentIntentGroup",
            "metadata": {"name": "nulls", "namespace": "demo"},
            "spec": {
                "compositeAppRef": {"name": "hello"},
                "placement": {"allOf": [{"provider": null, "selector": {}}]},
                "readyClusters": null,
                "desiredState": null,
                "sync": null,
                "suspend": null,
            },
        });
        let stored = apply(&bed.hub().client().await?, &object, false).await??;
        let read: emco_crds::DeploymentIntentGroup = serde_json::from_value(serde_json::to_value(&stored)?)?;
        assert_eq!(read.spec.ready_clusters.to_string(), "100%");
        assert_eq!(read.spec.sync, emco_crds::deployment_intent_group::sync::Sync::default());
        assert_eq!((read.spec.suspend, &read.spec.placement.all_of[0].provider), (None, &None));
        Ok(())
    })
    .await;
}

/// Rules have a budget at run time too: an object at the limits must not exceed it.
#[tokio::test]
async fn a_composite_app_at_its_limits_is_accepted() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let name = |i: usize| format!("{:a<40}-{i:02}", "app");
        let apps: Vec<Value> = (0..64usize)
            .map(|i| {
                let before: Vec<Value> = (i.saturating_sub(8)..i).map(|d| json!({"app": name(d)})).collect();
                json!({"name": name(i), "chart": {"configMapRef": {"name": "charts"}}, "dependsOn": before})
            })
            .collect();
        let object = json!({
            "apiVersion": emco_crds::names::API_VERSION,
            "kind": "CompositeApp",
            "metadata": {"name": "limits", "namespace": "demo"},
            "spec": {"apps": apps},
        });
        apply(&bed.hub().client().await?, &object, true).await??;
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn an_unknown_enum_value_or_field_is_named() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let text = "
apiVersion: emco.io/v1alpha1
kind: DeploymentIntentGroup
metadata: {name: typo, namespace: demo}
spec: {compositeAppRef: {name: hello}, placement: {allOf: [{selector: {}}]}, desiredState: Running, placment: {}}
";
        let said = bed.hub().kubectl().output(&["apply", "-f", "-"], text).await?.stderr;
        assert!(said.contains("unknown field \"spec.placment\""), "{said}");
        let said = bed.hub().kubectl().output(&["apply", "--validate=false", "-f", "-"], text).await?.stderr;
        assert!(said.contains("spec.desiredState: Unsupported value: \"Running\""), "{said}");
        assert!(said.contains("\"Instantiated\", \"Planned\", \"Terminated\""), "{said}");
        Ok(())
    })
    .await;
}

fn cells(line: &str) -> Vec<String> {
    line.split("   ").map(str::trim).filter(|c| !c.is_empty()).map(str::to_owned).collect()
}

#[tokio::test]
async fn one_line_tells_about_a_deployment() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let text = &files("crds/tests/full")?["deploymentintentgroup"];
        let mut document = documents(text)?.remove(0);
        document["metadata"]["name"] = json!("one-line");
        let client = bed.hub().client().await?;
        apply(&client, &document, false).await??;
        let params = PatchParams::apply("test").force();
        api(&client, &document)?.patch_status("one-line", &params, &Patch::Apply(&document)).await?;
        let printed = bed.hub().kubectl().run(&["get", "dig", "one-line", "-n", "full"]).await?;
        let lines: Vec<_> = printed.lines().map(cells).collect();
        assert_eq!(lines[0], ["NAME", "STATE", "READY", "REASON", "CLUSTERS", "REV", "PENDING", "AGE"]);
        let line = ["one-line", "Instantiated", "True", "Ready", "41/42", "3", "8f2c41d07a3b"];
        assert_eq!(lines[1][..7], line);
        let wide = bed.hub().kubectl().run(&["get", "dig", "one-line", "-n", "full", "-o", "wide"]).await?;
        let lines: Vec<_> = wide.lines().map(cells).collect();
        assert_eq!(lines[0][8..], ["APP", "CLOUD", "MESSAGE"]);
        let message = "41 of 42 clusters ready (95% needed); 1 unreachable: acme/oslo-2";
        assert_eq!(lines[1][8..], ["shop-v2", "edge", message]);
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn every_kind_is_found_by_its_short_name_and_generated_ones_stay_out_of_the_way() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let list = ["api-resources", "--api-group=emco.io", "--no-headers", "-o", "wide"];
        let printed = bed.hub().kubectl().run(&list).await?;
        let column = |line: &str, i: usize| line.split_whitespace().nth(i).unwrap_or_default().to_owned();
        let found: BTreeSet<_> =
            printed.lines().map(|l| (column(l, 1), column(l, 4), column(l, 6))).collect();
        let expected = [
            ("actx", "AppContext", "emco-generated"),
            ("capp", "CompositeApp", "emco"),
            ("cprof", "CompositeProfile", "emco"),
            ("cprov", "ClusterProvider", "emco"),
            ("dappr", "DeploymentApproval", "emco"),
            ("dig", "DeploymentIntentGroup", "emco"),
            ("dview", "DeploymentView", "emco-generated"),
            ("ecl", "Cluster", "emco"),
            ("eproj", "Project", "emco"),
            ("gai", "GenericActionIntent", "emco"),
            ("gitt", "GitTarget", "emco"),
            ("hwi", "HardwareIntent", "emco"),
            ("lc", "LogicalCloud", "emco"),
            ("shard", "SyncShard", "emco-generated"),
            ("tgi", "TrafficGroupIntent", "emco"),
        ];
        let expected = expected.map(|(s, k, c)| (s.to_owned(), k.to_owned(), c.to_owned()));
        assert_eq!(found, BTreeSet::from(expected));
        for (short, ..) in &found {
            bed.hub().kubectl().run(&["get", short, "-A", "-o", "wide"]).await?;
        }
        Ok(())
    })
    .await;
}

#[tokio::test]
async fn objects_are_selected_by_scheduling_state_and_group() {
    let bed = hub().await.unwrap();
    bed.explain(async {
        let client = bed.hub().client().await?;
        let kubectl = bed.hub().kubectl();
        let namespace = "selected";
        kubectl.run(&["create", "namespace", namespace]).await?;
        let all = files("crds/tests/full")?;
        for (file, short, selector, field, other) in [
            ("cluster", "ecl", "spec.scheduling=Cordoned", "/spec/scheduling", "Drained"),
            ("deploymentintentgroup", "dig", "status.state=Instantiated", "/status/state", "Updating"),
            (
                "deploymentapproval",
                "dappr",
                "spec.deploymentIntentGroupRef.name=shop",
                "/spec/deploymentIntentGroupRef/name",
                "other",
            ),
        ] {
            let mut document = documents(&all[file])?.remove(0);
            document["metadata"]["namespace"] = json!(namespace);
            for name in ["a", "b"] {
                document["metadata"]["name"] = json!(name);
                apply(&client, &document, false).await??;
                let params = PatchParams::apply("test").force();
                api(&client, &document)?.patch_status(name, &params, &Patch::Apply(&document)).await?;
                *document.pointer_mut(field).context(field)? = json!(other);
            }
            let get = ["get", short, "-n", namespace, "--field-selector", selector, "-o", "name"];
            let found = kubectl.run(&get).await?;
            assert_eq!(found.lines().count(), 1, "{selector}: {found}");
            assert!(found.trim_end().ends_with("/a"), "{selector}: {found}");
        }
        Ok(())
    })
    .await;
}
