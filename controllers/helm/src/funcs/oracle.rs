//! Every function with arguments of every type, YAML, and `--set` must give what real Helm gave. The table is made by
//! `tests/oracle`.
use std::collections::BTreeMap;
use std::io::Read as _;

use super::Shared;
use crate::limits::{Limits, Meter};
use crate::strvals;
use crate::template::exec::{Render, StackGuard};
use crate::template::set::TemplateSet;
use crate::value::{Map, MapType, Value};
use crate::yaml;

#[derive(serde::Deserialize)]
struct Table {
    now: i64,
    functions: Vec<Case>,
    reads: Vec<Case>,
    writes: Vec<Case>,
    sets: Vec<SetCase>,
    values: BTreeMap<String, String>,
    names: Vec<String>,
}

#[derive(serde::Deserialize)]
struct Case {
    i: String,
    o: Option<String>,
}

#[derive(serde::Deserialize)]
struct SetCase {
    k: String,
    i: String,
    o: Option<String>,
}

fn table() -> Table {
    let mut text = Vec::new();
    let packed = include_bytes!("../../tests/oracle/table.json.gz");
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut text).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// Functions that give something else each time: only type and length are compared.
const RANDOM: &[&str] = &[
    "randAlpha",
    "randAlphaNum",
    "randNumeric",
    "randAscii",
    "randBytes",
    "randInt",
    "shuffle",
    "uuidv4",
    "bcrypt",
    "htpasswd",
    "encryptAES",
    "genCA",
    "genCAWithKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "genPrivateKey",
];

/// Functions that may show the time of the run: digits are not compared.
const TIMED: &[&str] =
    &["now", "ago", "date", "dateInZone", "date_in_zone", "htmlDate", "htmlDateInZone", "durationRound"];

/// Functions that give complaints of Go as text, whose wording is not compared.
const WORDED: &[&str] = &["fromJson", "fromJsonArray", "fromYaml", "fromYamlArray", "fromToml", "toToml"];

fn comparable(expression: &str, shown: &str) -> String {
    let function = expression.trim_start_matches('(').split([' ', ')']).next().unwrap();
    let parts: Vec<&str> = shown.splitn(4, '|').collect();
    if function == "randInt" {
        return format!("{}|{}", parts[0], parts[1]);
    }
    if RANDOM.contains(&function) && !shown.contains("-----BEGIN") && !shown.contains("nknown type") {
        return format!("{}|{}|{}", parts[0], parts[1], parts[2].chars().count());
    }
    if RANDOM.contains(&function) && shown.contains("-----BEGIN") {
        let labels: Vec<&str> = shown.split("-----").filter(|part| part.starts_with("BEGIN ")).collect();
        return format!("{}|{}|{labels:?}", parts[0], parts[1]);
    }
    if function == "ago"
        || TIMED.contains(&function) && !expression.contains("(int64") && !expression.contains("(toDate")
    {
        let kept: String = parts[2].chars().filter(|c| !c.is_ascii_digit() && *c != '.').collect();
        return format!("{}|{}|{}", parts[0], parts[1], kept.split(" m=").next().unwrap());
    }
    let erred = shown.contains("\"Error\":")
        || shown.contains("[]interface {}|slice|[error")
        || shown.contains("json:");
    if WORDED.contains(&function) && erred {
        return format!("{}|{}|error", parts[0], parts[1]);
    }
    shown.to_owned()
}

/// What a template prints, or its error; a panic would be a failure of the test.
fn run(expression: &str, now: i64, values: &Map) -> Result<String, String> {
    let text = format!(
        "{{{{ $r := ({expression}) }}}}{{{{ printf \"%T\" $r }}}}|{{{{ kindOf $r }}}}|{{{{ printf \"%v\" $r }}}}|{{{{ toJson $r }}}}"
    );
    let mut set = TemplateSet::default();
    set.add(crate::template::parse("c/templates/t", text.into_bytes()).map_err(|error| error.to_string())?);
    // With a seed, so that no random text happens to hold what separates the parts.
    let shared = Shared::new(Meter::start(&Limits::default()), Some([1; 32]), (now, 0));
    let render = Render::new(&shared, &set, None, StackGuard::here());
    let data = Value::map([("Values".into(), Value::Map(values.with_type(MapType::Values)))]);
    let output = render.file("c/templates/t", &data).map_err(|error| error.to_string())?;
    // The generator writes one replacement character for a run of invalid bytes.
    let mut shown = String::new();
    let mut replaced = false;
    for chunk in output.utf8_chunks() {
        replaced &= chunk.valid().is_empty();
        shown.push_str(chunk.valid());
        if !chunk.invalid().is_empty() && !std::mem::replace(&mut replaced, true) {
            shown.push('\u{FFFD}');
        }
    }
    Ok(shown)
}

/// Fails with the first of many differences.
fn report(wrong: &[String], total: usize) {
    let shown: Vec<&str> = wrong.iter().take(60).map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} of {total} cases differ:\n{}", wrong.len(), shown.join("\n"));
}

#[test]
fn no_function_is_missing() {
    let names = table().names;
    assert_eq!(names.len(), 238);
    let own = ["include", "tpl", "required", "lookup", "fail", "and", "or", "call"];
    let missing: Vec<&String> =
        names.iter().filter(|name| super::find(name).is_none() && !own.contains(&name.as_str())).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn every_function_gives_what_helm_gives() {
    let table = table();
    let mut wrong = Vec::new();
    for case in &table.functions {
        let Value::Map(values) = yaml::to_value(table.values["values"].as_bytes()).unwrap() else { panic!() };
        let got = run(&case.i, table.now, &values);
        let want = case.o.as_ref().map(|shown| comparable(&case.i, shown));
        if got.as_ref().ok().map(|shown| comparable(&case.i, shown)) != want {
            wrong.push(format!("{}\n  Helm: {:?}\n  here: {:?}", case.i, case.o, got));
        }
    }
    report(&wrong, table.functions.len());
}

#[test]
fn yaml_is_read_as_helm_reads_it() {
    let table = table();
    let mut wrong = Vec::new();
    for case in &table.reads {
        let got = yaml::to_json(case.i.as_bytes());
        let want: Option<serde_json::Value> =
            case.o.as_ref().map(|text| crate::gojson::decode(text.as_bytes()).unwrap().to_json().unwrap());
        // Numbers are compared as the floats JSON makes of them.
        let floats = got.as_ref().ok().map(|got| Value::from_json(got).to_json().unwrap());
        if floats != want {
            wrong.push(format!("{:?}\n  Helm: {:?}\n  here: {:?}", case.i, case.o, got));
        }
    }
    report(&wrong, table.reads.len());
}

#[test]
fn yaml_is_written_as_helm_writes_it() {
    let table = table();
    let mut wrong = Vec::new();
    for case in &table.writes {
        let value = crate::gojson::decode(case.i.as_bytes()).unwrap();
        let got = yaml::from_value(&value).ok().map(|text| String::from_utf8(text).unwrap());
        if got != case.o {
            wrong.push(format!("{}\n  Helm: {:?}\n  here: {:?}", case.i, case.o, got));
        }
    }
    report(&wrong, table.writes.len());
}

#[test]
fn set_flags_are_read_as_helm_reads_them() {
    let table = table();
    let mut wrong = Vec::new();
    for case in &table.sets {
        let (flag, start) = case.k.split_at(case.k.find('{').unwrap());
        let Value::Map(values) = crate::gojson::decode(start.as_bytes()).unwrap() else { panic!() };
        let done = match flag {
            "typed" => strvals::parse_into(&case.i, &values),
            "text" => strvals::parse_string_into(&case.i, &values),
            "json" => strvals::parse_json_into(&case.i, &values),
            _ => strvals::parse_literal_into(&case.i, &values),
        };
        let json = |value: &Value| String::from_utf8(crate::gojson::encode(value, true).unwrap()).unwrap();
        let got = done.map(|()| json(&Value::Map(values)));
        if got.as_ref().ok() != case.o.as_ref() {
            wrong.push(format!("{} {}\n  Helm: {:?}\n  here: {:?}", case.k, case.i, case.o, got));
        }
    }
    report(&wrong, table.sets.len());
}
