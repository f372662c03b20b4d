//! Charts that use up memory end in an error, within an address space that one render may take.
use std::path::Path;
use std::process::Command;

/// KiB of address space of the whole program: one render at its limits, stacks included, and the program itself.
const MOST_KIB: u32 = 512 << 10;

/// Renders a chart of one template in a process of its own; answers what it printed as an error, if it failed.
fn within_limits(folder: &Path, template: &str) -> Option<String> {
    std::fs::create_dir_all(folder.join("templates")).unwrap();
    std::fs::write(folder.join("Chart.yaml"), "apiVersion: v2\nname: bomb\nversion: 0.1.0\n").unwrap();
    std::fs::write(folder.join("templates/a.yaml"), template).unwrap();
    let output = Command::new("bash")
        .args(["-c", &format!("ulimit -v {MOST_KIB}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_emco-helm")])
        .args(["template", "bomb"])
        .arg(folder)
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code().is_some(), "{template}: ended by a signal: {error}");
    (!output.status.success()).then_some(error)
}

#[test]
fn charts_that_allocate_are_refused_within_the_memory_of_one_render() {
    let folder = tempfile::tempdir().unwrap();
    for template in [
        r#"{{ $a := repeat 900000000 "x" }}a: {{ len $a }}"#,
        r#"{{ $a := repeat 30000000 "x" }}{{ $b := b64enc $a }}{{ $c := b64enc $b }}a: {{ len $c }}"#,
        r#"{{ $l := list }}{{ range until 20000 }}{{ $l = append $l (repeat 10000 "x") }}{{ end }}a: {{ len $l }}"#,
        r"{{ $d := dict }}{{ range $i := until 2000000 }}{{ $_ := set $d (toString $i) (list $i) }}{{ end }}a: {{ len $d }}",
        r"{{ range until 2000000 }}line of a text that is printed again and again
{{ end }}",
        r#"a: {{ printf "%900000000d" 1 | len }}"#,
        r#"{{ $a := repeat 10000000 "x\n" }}a: {{ indent 100 $a | len }}"#,
        r#"{{ $a := repeat 10000000 "x" }}a: {{ regexReplaceAll "x" $a "0123456789" | len }}"#,
        r#"{{ $a := repeat 10000000 "x" }}a: {{ replace "x" "0123456789" $a | len }}"#,
        r"{{ $a := until 3000000 }}a: {{ toYaml $a | len }}",
        r"{{ $a := until 3000000 }}a: {{ toPrettyJson (list $a $a $a $a) | len }}",
        r#"{{ $a := repeat 5000000 "a: [1]\n" }}a: {{ len (fromYaml $a) }}"#,
        r#"{{ $a := printf "[%s1]" (repeat 8000000 "1,") }}a: {{ len (fromJsonArray $a) }}"#,
        r#"{{ $a := repeat 8000000 "a," }}a: {{ len (splitList "," $a) }}"#,
        r"a:{{ range until 3000000 }}
- {}{{ end }}",
        r#"a: [{{ repeat 6000000 "1," }}1]"#,
        r#"a: [{{ repeat 3000000 "{}," }}1]"#,
        r#"a: [{{ repeat 2000000 "[[]]," }}1]"#,
    ] {
        let error = within_limits(folder.path(), template);
        assert!(error.is_none_or(|error| !error.contains("allocation")), "{template} used up the memory");
    }
}
