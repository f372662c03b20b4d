//! The library as other crates use it.
use std::collections::BTreeSet;

use emco_helm::{
    Capabilities, Chart, Compiled, HookDeletePolicy, HookEvent, Limits, Release, RenderRequest, Rendered, Set,
};
use serde_json::json;

fn compile(files: &[(&str, &str)]) -> Compiled {
    let mut all = vec![(
        "Chart.yaml".to_owned(),
        b"apiVersion: v2\nname: shop\nversion: 0.1.0\nappVersion: '9'\n".to_vec(),
    )];
    all.extend(files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())));
    Compiled::new(Chart::from_files(all, &Limits::default()).unwrap()).unwrap()
}

fn render(compiled: &Compiled, request: &RenderRequest<'_>) -> Rendered {
    compiled.render(request).unwrap()
}

#[test]
fn numbers_are_floats_in_values_and_integers_in_manifests() {
    let compiled = compile(&[(
        "templates/a.yaml",
        "kind: {{ kindOf .Values.n }}\ncount: {{ .Values.n }}\nbig: 1234567\n",
    )]);
    let rendered = render(&compiled, &RenderRequest { values: json!({"n": 3}), ..RenderRequest::default() });
    assert_eq!(rendered.manifests[0].json, json!({"kind": "float64", "count": 3, "big": 1_234_567}));
    assert!(rendered.manifests[0].json["count"].is_i64());
}

#[test]
fn assignments_apply_over_values() {
    let compiled = compile(&[("templates/a.yaml", "a: {{ toJson .Values }}")]);
    let request = RenderRequest {
        values: json!({"a": {"b": 1}, "l": [1, 2]}),
        set: vec![
            Set::Typed("a.c=2,l[1]=x".to_owned()),
            Set::Text("s=5".to_owned()),
            Set::Json("j={\"k\":[]}".to_owned()),
        ],
        ..RenderRequest::default()
    };
    let rendered = render(&compiled, &request);
    assert_eq!(
        rendered.manifests[0].json["a"],
        json!({"a": {"b": 1, "c": 2}, "j": {"k": []}, "l": [1, "x"], "s": "5"})
    );
}

#[test]
fn a_render_records_what_it_asked_of_the_cluster() {
    let compiled = compile(&[(
        "templates/a.yaml",
        r#"a: {{ if .Values.ask }}{{ .Capabilities.APIVersions.Has "x/v1" }}{{ .Capabilities.KubeVersion.Minor }}{{ end }}"#,
    )]);
    let quiet = render(&compiled, &RenderRequest::default());
    assert!(!quiet.reads.capabilities());
    let capabilities = Capabilities {
        kube_version: "v1.36.3".to_owned(),
        api_versions: vec!["x/v1".to_owned()],
        ..Capabilities::default()
    };
    let request = RenderRequest { values: json!({"ask": true}), capabilities, ..RenderRequest::default() };
    let asked = render(&compiled, &request);
    assert_eq!(asked.manifests[0].json["a"], "true36");
    assert_eq!(asked.reads.api_versions, BTreeSet::from(["x/v1".to_owned()]));
    assert!(asked.reads.kube_version && !asked.reads.all_api_versions);
}

#[test]
fn versions_of_kubernetes_are_those_that_helm_takes() {
    for good in ["1", "v1.30", "1.30.01", "01.30", "v1.30.1+k3s", "1.30.0-gke.1", "v1.30-x", "1.30-gke+x"] {
        assert_eq!(Capabilities::check_kube_version(good), Ok(()));
    }
    let bad =
        ["v", "v1.30+", "1.30-", "1.30.0-", "1.30.0+a_b", "1.30.0-a..b", "V1.30", "1.30.0 ", "1.30.0.1"];
    for bad in bad {
        let said = format!("invalid kube version '{bad}': Invalid Semantic Version");
        assert_eq!(Capabilities::check_kube_version(bad), Err(said));
    }
}

#[test]
fn what_was_kept_of_earlier_renders_changes_nothing() {
    let compiled = compile(&[
        (
            "templates/a.yaml",
            "kind: ConfigMap\nmetadata: {name: a}\n---\nkind: {{ .Values.kind }}\nmetadata: {name: b}\ntext: |\n  x\n---\n# none\n",
        ),
        (
            "templates/hook.yaml",
            "kind: Job\nmetadata: {name: h, annotations: {helm.sh/hook: '{{ .Values.hook }}'}}\ntext: |\n  x\n",
        ),
        ("templates/z.yaml", "kind: ConfigMap\nmetadata: {name: a}\n"),
    ]);
    for (kind, hook) in
        [("Secret", "pre-install"), ("Service", "pre-install"), ("Service", "x"), ("Secret", "test")]
    {
        let request = |reuse| RenderRequest {
            values: json!({"kind": kind, "hook": hook}),
            reuse,
            ..RenderRequest::default()
        };
        let (anew, again) = (render(&compiled, &request(false)), render(&compiled, &request(true)));
        assert_eq!(again.manifests, anew.manifests, "{kind} {hook}");
        assert_eq!(again.documents, anew.documents, "{kind} {hook}");
        assert_eq!(again.warnings, anew.warnings, "{kind} {hook}");
    }
    let broken =
        |reuse| RenderRequest { values: json!({"kind": "a: b: c"}), reuse, ..RenderRequest::default() };
    let error = |reuse| compiled.render(&broken(reuse)).unwrap_err().to_string();
    assert_eq!(error(true), error(false));
}

fn compile_one(template: &str) -> Compiled {
    compile(&[("templates/a.yaml", template)])
}

#[test]
fn hooks_carry_events_weights_and_policies_and_come_last() {
    let compiled = compile(&[(
        "templates/a.yaml",
        "
kind: Job
metadata:
  name: migrate
  annotations: {helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-weight: '-5', helm.sh/hook-delete-policy: hook-succeeded}
---
kind: Service
metadata: {name: s}
---
# nothing
",
    ), ("crds/c.yaml", "kind: CustomResourceDefinition\n---\nkind: Second\n"), ("templates/NOTES.txt", "hello {{ .Release.Name }}")]);
    let release = Release { name: "r".to_owned(), ..Release::default() };
    let rendered = render(&compiled, &RenderRequest { release, ..RenderRequest::default() });
    let kinds: Vec<_> =
        rendered.manifests.iter().map(|manifest| manifest.json["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["CustomResourceDefinition", "Second", "Service", "Job"]);
    assert_eq!(
        rendered.manifests.iter().map(|manifest| manifest.crd).collect::<Vec<_>>(),
        [true, true, false, false]
    );
    let hook = rendered.manifests[3].hook.as_ref().unwrap();
    assert_eq!(hook.events, [HookEvent::PreInstall, HookEvent::PreUpgrade]);
    assert_eq!(
        (hook.weight, hook.delete_policies.as_slice()),
        (-5, [HookDeletePolicy::HookSucceeded].as_slice())
    );
    assert_eq!(rendered.manifests[3].source, "shop/templates/a.yaml");
    assert_eq!(rendered.notes.as_deref(), Some("hello r"));
}

#[test]
fn a_seed_makes_random_values_repeat() {
    let compiled = compile_one(
        "a: {{ randAlphaNum 20 }}\nb: {{ randAlphaNum 20 }}\nc: {{ uuidv4 }}\nd: {{ now | unixEpoch }}\n",
    );
    let seeded = |seed: u8| {
        let request =
            RenderRequest { seed: Some([seed; 32]), now: Some(1_700_000_000), ..RenderRequest::default() };
        render(&compiled, &request).manifests[0].json.clone()
    };
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
    assert_ne!(seeded(1)["a"], seeded(1)["b"]);
    assert_eq!(seeded(1)["d"], 1_700_000_000);
    let free = || render(&compiled, &RenderRequest::default()).manifests[0].json.clone();
    assert_ne!(free()["a"], free()["a"]);
}

#[test]
fn one_compiled_chart_renders_on_many_threads() {
    let compiled = compile(&[
        ("values.yaml", "list: [1, 2, 3]\nmap: {a: 1}\n"),
        (
            "templates/a.yaml",
            r#"{{ $_ := set .Values.map "a" .Values.n }}a: x{{ .Values.map.a }}{{ range .Values.list }}{{ . }}{{ end }}"#,
        ),
    ]);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let compiled = &compiled;
            scope.spawn(move || {
                for index in 0..50 {
                    let n = thread * 1000 + index;
                    let request = RenderRequest { values: json!({"n": n}), ..RenderRequest::default() };
                    let rendered = render(compiled, &request);
                    assert_eq!(rendered.manifests[0].json["a"], format!("x{n}123"));
                }
            });
        }
    });
}

#[test]
fn overrides_choose_the_dependencies_of_each_render() {
    let compiled = compile(&[
        ("requirements.yaml", "dependencies: [{name: kid, version: '1', condition: kid.enabled}]"),
        ("charts/kid/Chart.yaml", "name: kid\nversion: 1.0.0"),
        ("charts/kid/templates/k.yaml", "k: {{ .Release.Name }}"),
        ("templates/a.yaml", "a: 1"),
    ]);
    for enabled in [true, false, true] {
        let request =
            RenderRequest { values: json!({"kid": {"enabled": enabled}}), ..RenderRequest::default() };
        assert_eq!(render(&compiled, &request).manifests.len(), if enabled { 2 } else { 1 });
    }
}

#[test]
fn errors_name_the_place() {
    let error = compile_one("a: 1\nb: {{ .Values.x.y }}").render(&RenderRequest::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "template: shop/templates/a.yaml:2:13: executing \"shop/templates/a.yaml\" at <.Values.x.y>: \
         nil pointer evaluating interface {}.y"
    );
    let place = error.place().unwrap();
    assert_eq!((place.file.as_str(), place.line, place.column), ("shop/templates/a.yaml", 2, 13));
}

#[test]
fn the_last_line_of_a_text_ends_with_a_break_in_manifests_and_without_in_hooks() {
    let text = "kind: ConfigMap\nmetadata: {name: x}\ndata:\n  run.sh: |\n    exec web\n";
    let hook = text.replace("{name: x}", "{name: y, annotations: {helm.sh/hook: pre-install}}");
    let compiled = compile(&[("templates/a.yaml", text), ("templates/b.yaml", hook.as_str())]);
    let rendered = render(&compiled, &RenderRequest::default());
    let lines: Vec<_> = rendered.manifests.iter().map(|manifest| &manifest.json["data"]["run.sh"]).collect();
    assert_eq!(lines, ["exec web\n", "exec web"], "as Helm sends them to the cluster");
}
