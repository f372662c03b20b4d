//! Charts that try to use up the memory of the process do not get far, by what the kernel counts.
//!
//! One test in a program of its own: the kernel counts for the whole process.
use emco_helm::{Chart, Compiled, Limits, RenderRequest};

/// What one render may take from the system at most, by the limits that are the default.
const MOST: usize = 224 << 20;

/// Templates that make as much as they can. `$big` is a text of many megabytes.
const ATTACKS: &[&str] = &[
    // One call.
    r#"{{ $a := repeat 900000000 "x" }}"#,
    r#"{{ $a := printf "%1000000000d" 1 }}"#,
    r#"{{ $a := printf (repeat 1000 "%[1]1000000d") 1 }}"#,
    r#"{{ $a := printf (repeat 1000 "%[1].1000000f") 1.5 }}"#,
    r"{{ $a := randAlphaNum 900000000 }}",
    r"{{ $a := until 50000000 }}",
    r"{{ $a := seq 1 50000000 }}",
    r#"{{ $a := repeat 15000000 "," | splitList "," }}"#,
    r#"{{ $a := repeat 15000000 "," | split "," }}"#,
    r#"{{ $a := repeat 15000000 "a" | splitList "" }}"#,
    r#"{{ $a := regexFindAll "a" (repeat 15000000 "a") -1 }}"#,
    r#"{{ $a := regexSplit "a" (repeat 15000000 "a") -1 }}"#,
    r#"{{ $a := regexFindAll "" (b64dec "/w==" | repeat 15000000) -1 }}"#,
    r#"{{ $a := regexReplaceAll "a" (repeat 1000000 "a") (repeat 1000 "b") }}"#,
    r#"{{ $a := replace "a" (repeat 1000 "b") (repeat 1000000 "a") }}"#,
    r#"{{ $a := indent 100000 (repeat 10000 "\n") }}"#,
    r#"{{ $a := join (repeat 1000000 "x") (until 100000) }}"#,
    r#"{{ $a := wrapWith 1 (repeat 100000 "x") (repeat 100000 "a") }}"#,
    r#"{{ $a := repeat 15000000 "<" | js }}"#,
    r#"{{ $a := repeat 15000000 "<" | html }}"#,
    r#"{{ $a := repeat 15000000 "\x00" | quote }}"#,
    r#"{{ $a := fail (repeat 30000000 "x") }}"#,
    // Documents that are short as text.
    r#"{{ $a := printf "[%s]" (repeat 10000000 "a,") | fromYamlArray }}"#,
    r#"{{ $a := repeat 5000000 "-\n" | fromYamlArray }}"#,
    r#"{{ $a := printf "[%s{}]" (repeat 5000000 "{a: },") | fromYamlArray }}"#,
    r#"{{ $a := printf "[%s1]" (repeat 10000000 "1,") | fromJsonArray }}"#,
    r#"{{ $a := printf "[%s1]" (repeat 3000000 "{\"a\":1},") | fromJsonArray }}"#,
    r#"{{ $a := printf "a=[%s1]" (repeat 10000000 "1,") | fromToml }}"#,
    r#"{{ $a := tpl (repeat 5000000 "{{.}}") "" }}"#,
    r#"{{ $a := tpl (printf "{{ list %s }}" (repeat 5000000 ". ")) "" }}"#,
    r#"{{ $a := trimAll (repeat 10000000 "a") (repeat 10000000 "b") }}"#,
    r#"{{ $a := regexFindAll "(a{1000}){10}" (repeat 10000000 "a") -1 }}"#,
    r#"{{ $a := regexFindAll ".*[^A-Z]|[A-Z]" (repeat 1000000 "A") -1 }}"#,
    // Many calls.
    r#"{{ $s := "x" }}{{ range until 60 }}{{ $s = print $s $s }}{{ end }}"#,
    r#"{{ $s := "x" }}{{ range until 60 }}{{ $s = b64enc $s }}{{ $s = print $s $s }}{{ end }}"#,
    r#"{{ $s := "x" }}{{ range until 60 }}{{ $s = printf "%q%x" $s $s }}{{ end }}"#,
    r#"{{ $big := repeat 10000000 "x" }}{{ $l := list }}{{ range until 1000 }}{{ $l = append $l (trimSuffix "x" $big) }}{{ end }}"#,
    r#"{{ $big := repeat 10000000 "x" }}{{ $l := list }}{{ range until 1000 }}{{ $l = append $l (substr 1 9999999 $big) }}{{ end }}"#,
    r#"{{ $big := repeat 10000000 "x" }}{{ $l := list }}{{ range until 1000 }}{{ $l = append $l (upper $big) }}{{ end }}"#,
    r#"{{ $big := repeat 10000000 "x" }}{{ $l := list }}{{ range until 1000 }}{{ $l = append $l (nospace $big) }}{{ end }}"#,
    r#"{{ $big := repeat 10000000 "x" }}{{ $a := cat $big $big $big $big $big $big $big $big $big $big $big $big $big $big $big $big }}"#,
    r"{{ $l := list }}{{ range until 10000000 }}{{ $l = append $l . }}{{ end }}",
    r"{{ $d := dict }}{{ range until 10000000 }}{{ $_ := set $d (toString .) . }}{{ end }}",
    r#"{{ $d := dict }}{{ range until 10000000 }}{{ $d = dict "a" $d }}{{ end }}"#,
    r"{{ $l := list }}{{ range until 10000000 }}{{ $l = list $l }}{{ end }}",
    r#"{{ $d := dict }}{{ range until 10000000 }}{{ $_ := set $d (printf "%d" .) (dict "a" (list 1)) }}{{ end }}"#,
    r"{{ $a := chunk 1 (until 500000) }}",
    r#"{{ range until 10000000 }}{{ $_ := lookup "v1" "Secret" "x" (repeat 100000 "x") }}{{ end }}"#,
    r#"{{ range until 10000000 }}{{ $_ := .Capabilities.APIVersions.Has (printf "%0100000d" .) }}{{ end }}"#,
    r#"{{ range until 10000 }}{{ $_ := regexMatch (printf "(a{1000}){20}%d" .) "a" }}{{ end }}"#,
    r#"{{ range until 10000 }}{{ $_ := regexMatch (printf "[[:word:]]{900}x%d" .) (repeat 10000 "a") }}{{ end }}"#,
    // Values that share values.
    r"{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $a := toYaml $l }}",
    r"{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $a := toJson $l }}",
    r"{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $a := toPrettyJson $l }}",
    r#"{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $a := dict "a" $l | toToml }}"#,
    r"{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $a := toString $l }}",
    r#"{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $a := printf "%v%v" $l $l }}"#,
    r"{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $a := quote $l $l $l $l }}",
    r"{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $a := deepCopy $l }}",
    r"{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ $l }}",
    r#"{{ $d := dict "a" 1 }}{{ range until 60 }}{{ $d = dict "a" $d "b" $d }}{{ end }}{{ $a := toYaml $d }}"#,
    // Templates that call templates.
    r#"{{ define "a" }}{{ repeat 1000 "x" }}{{ include "a" . }}{{ end }}{{ include "a" . }}"#,
    r#"{{ define "a" }}{{ $x := printf "%s%s" . . }}{{ include "a" $x }}{{ end }}{{ include "a" "x" }}"#,
    r#"{{ $t := "{{ $x := repeat 100000 . }}{{ tpl $.t . }}" }}{{ $d := dict "t" "{{ tpl (print .t .t) (dict \"t\" (print .t .t)) }}" }}{{ tpl $d.t $d }}"#,
    // What is printed.
    r#"{{ range until 1000000 }}a{{ . }}: {{ repeat 10000 "x" }}{{ "\n" }}{{ end }}"#,
    r#"a: [{{ repeat 7000000 "b," }}]"#,
    r#"{{ repeat 3000000 "- a\n" }}"#,
    r#"a: [{{ repeat 2000000 "{a: }," }}]"#,
    r#"{{ range until 4000 }}{{ printf "---\na%d: &a [%s]\nb: [*a, *a, *a, *a, *a, *a, *a, *a, *a]\n" . (repeat 1000 "x,") }}{{ end }}"#,
    r#"{{ range until 100000 }}{{ "---\n" }}a: [{{ repeat 50 "b," }}]{{ "\n" }}{{ end }}"#,
];

fn kibibytes(field: &str) -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().unwrap()
}

fn chart(template: &str) -> Compiled {
    let files =
        [("Chart.yaml", "apiVersion: v2\nname: bomb\nversion: 0.1.0\n"), ("templates/a.yaml", template)];
    let files = files.map(|(name, text)| (name.to_owned(), text.as_bytes().to_vec()));
    Compiled::new(Chart::from_files(files.to_vec(), &Limits::default()).unwrap()).unwrap()
}

/// Renders once; how far the memory of the process got beyond what it had at first, in bytes.
fn peak(compiled: &Compiled, reuse: bool, at_first: usize) -> usize {
    // The highest mark becomes what is in use now.
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    // A chart that drops all it makes goes on until its time is over.
    let limits = Limits { time: std::time::Duration::from_secs(3), ..Limits::default() };
    let _ =
        compiled.render(&RenderRequest { limits, reuse, seed: Some([1; 32]), ..RenderRequest::default() });
    kibibytes("VmHWM").saturating_sub(at_first) << 10
}

#[test]
fn no_chart_takes_more_memory_than_a_render_may() {
    let mut wrong = Vec::new();
    let at_first = kibibytes("VmRSS");
    for (number, template) in ATTACKS.iter().enumerate() {
        let start = std::time::Instant::now();
        let peak = peak(&chart(template), number % 2 == 0, at_first);
        println!("{:5} MiB {:5} ms {template}", peak >> 20, start.elapsed().as_millis());
        if peak > MOST {
            wrong.push(format!("{} MiB: {template}", peak >> 20));
        }
    }
    assert!(wrong.is_empty(), "more than {} MiB:\n{}", MOST >> 20, wrong.join("\n"));
}
