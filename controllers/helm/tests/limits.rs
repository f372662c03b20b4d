//! Charts that try to use up time, memory or the stack end in an error that says so.
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use emco_helm::{Chart, Compiled, LimitError, Limits, RenderError, RenderRequest, Rendered};

fn chart(files: &[(&str, &str)]) -> Chart {
    let mut all = vec![("Chart.yaml".to_owned(), b"apiVersion: v2\nname: bomb\nversion: 0.1.0\n".to_vec())];
    all.extend(files.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())));
    Chart::from_files(all, &Limits::default()).unwrap()
}

fn render_within(template: &str, limits: Limits) -> Result<Rendered, RenderError> {
    let compiled = Compiled::new(chart(&[("templates/a.yaml", template)])).unwrap();
    compiled.render(&RenderRequest { limits, ..RenderRequest::default() })
}

fn error(template: &str) -> RenderError {
    let limits = Limits {
        memory_bytes: 64 << 20,
        iterations: 1_000_000,
        time: Duration::from_secs(30),
        ..Limits::default()
    };
    render_within(template, limits).unwrap_err()
}

#[test]
fn recursion_without_end_is_an_error() {
    for template in [
        r#"{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}"#,
        r#"{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}"#,
        r#"{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ template "a" . }}{{ end }}{{ include "a" . }}"#,
        r#"{{ define "a" }}{{ tpl "{{ include \"a\" . }}" . }}{{ end }}{{ include "a" . }}"#,
        r#"{{ $d := dict }}{{ $_ := set $d "t" "{{ tpl .t . }}" }}{{ tpl $d.t $d }}"#,
        r"{{ include .Template.Name . }}",
    ] {
        let error = error(template);
        assert!(
            error.limit().is_some() || error.to_string().contains("nested reference"),
            "{template}: {error}"
        );
    }
}

#[test]
fn recursion_through_deep_expressions_is_an_error() {
    let parens = 900;
    let template = format!(
        r#"{{{{ define "a" }}}}{{{{ {}include "a" .{} }}}}{{{{ end }}}}{{{{ include "a" . }}}}"#,
        "(".repeat(parens),
        ")".repeat(parens)
    );
    let limits = Limits { depth: usize::MAX, ..Limits::default() };
    let error = render_within(&template, limits).unwrap_err();
    assert_eq!(error.limit(), Some(LimitError::Stack), "{error}");
}

#[test]
fn deeply_nested_text_is_refused_when_it_is_parsed() {
    let depth = 200_000;
    for template in [
        format!("{{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth)),
        format!("{}{}", "{{ if true }}".repeat(depth), "{{ end }}".repeat(depth)),
        format!("{{{{ if false }}}}{}{{{{ end }}}}", "{{ else if false }}".repeat(depth)),
        format!("{}{}", "{{ block \"a\" . }}".repeat(depth), "{{ end }}".repeat(depth)),
    ] {
        assert!(error(&template).to_string().contains("max expression depth exceeded"));
    }
}

#[test]
fn values_that_double_are_stopped() {
    let template = r#"{{ $s := "0123456789" }}{{ range until 100 }}{{ $s = print $s $s }}{{ end }}"#;
    assert!(matches!(error(template).limit(), Some(LimitError::Memory(_))));
    let template = r"{{ $l := list 1 }}{{ range until 100 }}{{ $l = concat $l $l }}{{ end }}";
    assert!(matches!(error(template).limit(), Some(LimitError::Memory(_) | LimitError::Time(_))));
    assert!(matches!(error(r#"{{ repeat 100000000000 "x" }}"#).limit(), Some(LimitError::Memory(_))));
    assert!(matches!(error(r"{{ until 1000000000000 }}").limit(), Some(LimitError::Memory(_))));
    let template =
        r#"{{ $s := repeat 1000 "{{ . }}" }}{{ range until 1000000 }}{{ $s = tpl $s $s }}{{ end }}"#;
    assert!(error(template).limit().is_some());
}

/// A definition of a kind as charts have them: many small maps.
fn definition(number: usize) -> String {
    let mut text = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: kinds{number}.example.com}}\nspec:\n  schema:\n    properties:\n"
    );
    for field in 0.. {
        if text.len() > 150_000 {
            return text;
        }
        text.push_str(&format!(
            "      field{field}:\n        description: What the field number {field} of this kind is there for.\n        properties:\n          name:\n            type: string\n          values:\n            items: {{type: integer}}\n            type: array\n        type: object\n"
        ));
    }
    text
}

/// A chart of forty large definitions, each in a file of its own, since a file of a chart has at most 5 MiB.
fn definitions(template: &str) -> Compiled {
    let mut files = vec![(
        "templates/_a.tpl".to_owned(),
        "{{ define \"outer\" }}{{ include \"inner\" . }}{{ end }}{{ define \"inner\" }}{{ tpl (include .name .) . | fromYaml | toYaml | nindent 0 }}{{ end }}".to_owned(),
    )];
    files.push(("templates/a.yaml".to_owned(), template.to_owned()));
    files.extend((0..40).map(|number| {
        let text = format!("{{{{ define \"d{number}\" }}}}{}{{{{ end }}}}\n", definition(number));
        (format!("templates/_d{number}.tpl"), text)
    }));
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    Compiled::new(chart(&files)).unwrap()
}

fn printed(template: &str) -> (usize, usize) {
    let rendered = definitions(template).render(&RenderRequest::default()).unwrap();
    (rendered.manifests.len(), rendered.documents.iter().map(|document| document.text.len()).sum())
}

#[test]
fn megabytes_of_definitions_are_rendered() {
    let (manifests, bytes) = printed(
        "{{ range $n := until 40 }}{{ \"---\" }}{{ include \"outer\" (dict \"name\" (printf \"d%d\" $n) \"Template\" $.Template) }}\n{{ end }}",
    );
    assert_eq!(manifests, 40);
    assert!(bytes > 5 << 20, "{bytes}");
}

#[test]
fn what_was_dropped_again_is_no_memory() {
    let template = r#"{{ range until 200 }}{{ $s := repeat 1000000 "x" }}{{ $t := $s | trim }}{{ end }}a: 1"#;
    assert_eq!(render_within(template, Limits::default()).unwrap().manifests.len(), 1);
    let kept =
        r#"{{ $l := list }}{{ range until 100 }}{{ $l = append $l (repeat 1000000 "x") }}{{ end }}a: 1"#;
    assert!(matches!(error(kept).limit(), Some(LimitError::Memory(_))));
}

#[test]
fn what_is_printed_into_texts_is_no_output() {
    let limits = Limits { output_bytes: 2_000_000, ..Limits::default() };
    let deep = r#"{{ define "a" }}{{ repeat 1000000 "x" }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}a: {{ include "b" . }}"#;
    assert!(render_within(deep, limits.clone()).is_ok());
    let wide =
        r#"{{ define "a" }}{{ repeat 1000000 "x" }}{{ end }}a: {{ include "a" . }}{{ include "a" . }}"#;
    assert_eq!(render_within(wide, limits.clone()).unwrap_err().limit(), Some(LimitError::Output(2_000_000)));
}

#[test]
fn loops_and_output_are_bounded() {
    let limits = Limits { iterations: 10_000, ..Limits::default() };
    let template = "{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}";
    assert_eq!(render_within(template, limits).unwrap_err().limit(), Some(LimitError::Iterations(10_000)));
    let limits = Limits { output_bytes: 10_000, ..Limits::default() };
    let template =
        "{{ range until 1000 }}a: long line of text to fill the output with, until it is full\n{{ end }}";
    assert_eq!(render_within(template, limits).unwrap_err().limit(), Some(LimitError::Output(10_000)));
}

#[test]
fn a_slow_chart_ends_at_its_time_limit() {
    let limits = Limits { time: Duration::from_millis(300), iterations: u64::MAX, ..Limits::default() };
    let start = Instant::now();
    // One list for all rounds: a list for each would use up the memory first on a fast machine.
    let template =
        "{{ $l := until 5000 }}{{ range $l }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}{{ end }}";
    let error = render_within(template, limits.clone()).unwrap_err();
    assert_eq!(error.limit(), Some(LimitError::Time(limits.time)));
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_key_that_takes_too_long_to_make_ends_at_the_time_limit() {
    let limits = Limits { time: Duration::from_millis(5), ..Limits::default() };
    for call in [r#"genPrivateKey "rsa""#, r#"genPrivateKey "dsa""#, r#"genCA "ca" 1"#] {
        // One call, which begins in time; with a seed, so that no lucky draw is a prime at once.
        let template = format!("a: {{{{ {call} | toString | len }}}}");
        let compiled = Compiled::new(chart(&[("templates/a.yaml", &template)])).unwrap();
        let request =
            RenderRequest { limits: limits.clone(), seed: Some([1; 32]), ..RenderRequest::default() };
        let error = compiled.render(&request).unwrap_err();
        assert_eq!(error.limit(), Some(LimitError::Time(limits.time)), "{call}: {error}");
    }
}

#[test]
fn values_that_nest_without_end_or_contain_themselves_do_not_crash() {
    let nest = r#"{{ $m := dict }}{{ range until 200000 }}{{ $m = dict "a" $m }}{{ end }}"#;
    let cycle = r#"{{ $m := dict }}{{ $_ := set $m "m" $m }}"#;
    let cycles = r#"{{ $m := dict }}{{ $n := dict "l" (list $m) }}{{ $_ := set $m "n" $n }}"#;
    for start in [nest, cycle, cycles] {
        for end in [
            "toYaml $m",
            "toJson $m",
            "print $m",
            "$m",
            "deepCopy $m",
            "merge (dict) $m",
            "mergeOverwrite $m $m",
            "deepEqual $m (deepCopy $m)",
            "toString $m",
            "quote $m",
            "printf \"%v %+v %#v\" $m $m $m",
            "toToml $m",
            "toPrettyJson $m",
            "eq $m $m",
            "has $m (list $m)",
            "uniq (list $m $m)",
            "sortAlpha (list $m)",
            "tpl \"{{ . }}\" $m",
            "dict \"x\" $m | toRawJson",
            "list $m | join \",\"",
            "cat $m",
            "without (list $m) $m",
            "html $m",
        ] {
            // Some give a value and some an error; that this line is reached is the point.
            let _ = render_within(&format!("{start}{{{{ {end} | len }}}}"), Limits::default());
        }
    }
}

#[test]
fn deep_values_and_documents_are_refused() {
    let deep = format!("a: {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(error(&deep).to_string().contains("YAML parse error"));
    let files = vec![
        ("Chart.yaml".to_owned(), b"apiVersion: v2\nname: bomb\nversion: 0.1.0\n".to_vec()),
        ("values.yaml".to_owned(), deep.into_bytes()),
    ];
    assert!(Chart::from_files(files, &Limits::default()).is_err());
}

#[test]
fn aliases_that_multiply_are_refused() {
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..20 {
        let refs = format!("*a{}, ", level - 1).repeat(10);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", refs.trim_end_matches(", ")));
    }
    assert!(error(&bomb).to_string().contains("YAML parse error"));
}

#[test]
fn patterns_cannot_explode() {
    let start = Instant::now();
    let template = r#"{{ regexMatch "(a*)*(a*)*(a*)*b" (repeat 5000 "a") }}{{ regexMatch "((((a{100}){100}){100}){100})" "a" }}"#;
    let _ = render_within(template, Limits::default());
    let _ =
        render_within(r#"{{ range $p, $_ := .Files.Glob (repeat 5000 "{a,") }}{{ end }}"#, Limits::default());
    assert!(start.elapsed() < Duration::from_secs(20));
}

#[test]
fn error_messages_stay_short() {
    let name = "x".repeat(1000);
    let template = format!(
        r#"{{{{ define "{name}" }}}}{{{{ include "{name}" . }}}}{{{{ end }}}}{{{{ include "{name}" . }}}}"#
    );
    assert!(error(&template).to_string().len() < 256 << 10);
    let template = r#"{{ tpl (printf "{{ fail %q }}" (repeat 10000000 "x")) . }}"#;
    assert!(error(template).to_string().len() < 256 << 10);
}

#[test]
fn an_error_of_recursion_begins_with_the_file_that_calls() {
    let helpers =
        r#"{{ define "a" }}{{ include "b" . }}{{ end }}{{ define "b" }}{{ include "a" . }}{{ end }}"#;
    let files = [("templates/_h.tpl", helpers), ("templates/a.yaml", "a: 1\nb: {{ include \"a\" . }}\n")];
    let compiled = Compiled::new(chart(&files)).unwrap();
    let error = compiled.render(&RenderRequest::default()).unwrap_err().to_string();
    let begin = r#"template: bomb/templates/a.yaml:2:6: executing "bomb/templates/a.yaml" at <include "a" .>: error calling include: ["#;
    assert!(error.starts_with(begin), "{}", &error[..300]);
    assert!(error.contains(" further calls]: template: bomb/templates/_h.tpl:1:"));
    assert!(
        error.ends_with("templates call each other more than 1000 deep"),
        "{}",
        &error[error.len() - 300..]
    );
}

#[test]
fn a_render_that_is_stopped_from_outside_ends_at_once() {
    let stop = Arc::new(AtomicBool::new(true));
    let limits = Limits { stop: Some(Arc::clone(&stop)), ..Limits::default() };
    let template = "{{ range until 4000 }}{{ range until 4000 }}{{ end }}{{ end }}";
    assert_eq!(render_within(template, limits).unwrap_err().limit(), Some(LimitError::Stopped));
}

#[test]
fn a_slow_render_says_so_once_on_its_own_thread() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let limits = Limits {
        time: Duration::from_secs(1),
        slow: Some(|| {
            assert_eq!(std::thread::current().name(), Some("helm-render"));
            CALLS.fetch_add(1, Ordering::SeqCst);
        }),
        iterations: u64::MAX,
        ..Limits::default()
    };
    let template =
        "{{ range until 5000 }}{{ range until 5000 }}{{ range until 5000 }}{{ end }}{{ end }}{{ end }}";
    render_within(template, limits.clone()).unwrap_err();
    assert_eq!(CALLS.load(Ordering::SeqCst), 1);
    render_within("a: 1", limits).unwrap();
    assert_eq!(CALLS.load(Ordering::SeqCst), 1, "a quick one says nothing");
}
