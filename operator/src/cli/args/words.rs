//! Reads words of the command line, or says what to write instead.

use std::time::Duration;

/// A deployment intent group as people name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    /// Where it says so.
    pub project: Option<String>,
    /// The name of the object.
    pub name: String,
}

impl std::str::FromStr for Deployment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const KINDS: [&str; 4] =
            ["dig", "deploymentintentgroup", "deploymentintentgroups", "deploymentintentgroups.emco.io"];
        let wrong = || "write NAME, dig/NAME or PROJECT/NAME, such as shop/till".to_owned();
        let part = |text: &str| if is_label(text) { Ok(text.to_owned()) } else { Err(wrong()) };
        match text.split_once('/') {
            None => Ok(Self { project: None, name: part(text)? }),
            Some((kind, name)) if KINDS.contains(&kind) => Ok(Self { project: None, name: part(name)? }),
            Some((project, name)) => Ok(Self { project: Some(part(project)?), name: part(name)? }),
        }
    }
}

/// Whether a text is a DNS label, as all names here are.
pub fn is_label(text: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&text.len()) && text.bytes().all(good) && !text.starts_with('-') && !text.ends_with('-')
}

/// A cluster as PROVIDER/CLUSTER.
pub(super) fn cluster(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((provider, name)) if is_label(provider) && is_label(name) => Ok(text.to_owned()),
        _ => Err("write PROVIDER/CLUSTER, such as acme/berlin".to_owned()),
    }
}

/// A label as KEY=VALUE.
pub(super) fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write KEY=VALUE, such as tier=edge")?;
    if key.starts_with(emco_crds::names::PREFIX) {
        return Err(format!("labels with the prefix {} are kept for EMCO", emco_crds::names::PREFIX));
    }
    let good = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name = key.rsplit('/').next().unwrap_or_default();
    let ends = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphanumeric())
            && text.ends_with(|c: char| c.is_ascii_alphanumeric())
    };
    if !(1..=63).contains(&name.len()) || !name.chars().all(good) || !ends(name) {
        return Err(format!("{key:?} is not the key of a label"));
    }
    if value.len() > 63 || !value.chars().all(good) || !(value.is_empty() || ends(value)) {
        return Err(format!(
            "{value:?} is not the value of a label: at most 63 letters, digits, '-', '_' and '.', a letter or digit first \
             and last"
        ));
    }
    Ok((key.to_owned(), value.to_owned()))
}

/// A duration with its unit.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    const WRONG: &str = "write a duration such as 30s, 10m or 24h";
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| WRONG.to_owned())?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(WRONG.to_owned()),
    };
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(|| WRONG.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_is_named_in_three_ways() {
        let read = |text: &str| text.parse::<Deployment>();
        let plain = Deployment { project: None, name: "till".to_owned() };
        assert_eq!(read("till"), Ok(plain.clone()));
        assert_eq!(read("dig/till"), Ok(plain));
        assert_eq!(read("shop/till").map(|d| d.project), Ok(Some("shop".to_owned())));
        for bad in ["", "a/b/c", "/till", "shop/", "Till"] {
            assert!(read(bad).is_err_and(|why| why.contains("PROJECT/NAME")), "{bad}");
        }
    }

    #[test]
    fn labels_are_checked_before_anything_is_made() {
        assert_eq!(label("tier=edge"), Ok(("tier".to_owned(), "edge".to_owned())));
        assert_eq!(label("example.com/a="), Ok(("example.com/a".to_owned(), String::new())));
        for (bad, says) in [
            ("tier", "KEY=VALUE"),
            ("emco.io/x=y", "kept for EMCO"),
            ("a b=c", "key"),
            ("a=-", "value"),
            ("=x", "key"),
        ] {
            assert!(label(bad).is_err_and(|why| why.contains(says)), "{bad}");
        }
    }

    #[test]
    fn durations_have_a_unit() {
        assert_eq!(duration("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("24h"), Ok(Duration::from_secs(86_400)));
        for bad in ["", "5", "h", "1d", "-1s", "99999999999999999999h", "18446744073709551615h"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
