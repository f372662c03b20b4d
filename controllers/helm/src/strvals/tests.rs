use super::*;

fn json(parse: fn(&str, &Map) -> Result<(), String>, text: &str) -> Result<String, String> {
    let values = Map::default();
    parse(text, &values)?;
    Ok(Value::Map(values).to_json().unwrap().to_string())
}

#[test]
fn names_nest_by_points_and_indexes() {
    assert_eq!(
        json(parse_into, "a.b=1,c[1].d=x,e={1,two}").unwrap(),
        r#"{"a":{"b":1},"c":[null,{"d":"x"}],"e":[1,"two"]}"#
    );
}

#[test]
fn values_are_typed_unless_they_shall_be_text() {
    assert_eq!(
        json(parse_into, "a=true,b=null,c=012,d=1.5,e=").unwrap(),
        r#"{"a":true,"b":null,"c":"012","d":"1.5","e":""}"#
    );
    assert_eq!(json(parse_string_into, "a=true,b=1").unwrap(), r#"{"a":"true","b":"1"}"#);
}

#[test]
fn a_backslash_takes_the_next_character_as_it_is() {
    assert_eq!(json(parse_into, r"a\.b=x\,y").unwrap(), r#"{"a.b":"x,y"}"#);
    assert_eq!(json(parse_literal_into, r"a.b=x\,y").unwrap(), r#"{"a":{"b":"x\\,y"}}"#);
}

#[test]
fn json_values_stand_side_by_side() {
    assert_eq!(
        json(parse_json_into, r#"a={"x":[1,2]},b=null,c=,d="s""#).unwrap(),
        r#"{"a":{"x":[1,2]},"b":null,"c":null,"d":"s"}"#
    );
}

#[test]
fn huge_indexes_and_deep_names_are_refused() {
    assert!(json(parse_into, "a[65537]=1").is_err());
    assert!(json(parse_into, "a[-1]=1").is_err());
    assert!(json(parse_into, &format!("{}=1", vec!["a"; 40].join("."))).is_err());
}
