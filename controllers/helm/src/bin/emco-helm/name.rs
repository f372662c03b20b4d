//! Checks names of releases as Helm does.

/// Labels hold at most 63 characters, and charts add to the name.
const MAX_LENGTH: usize = 53;

/// Refuses what is no DNS name of at most 53 characters.
pub fn check(name: &str) -> Result<(), String> {
    if name.is_empty() {
        return Err("no release name provided".to_owned());
    }
    if name.len() <= MAX_LENGTH && name.split('.').all(is_label) {
        return Ok(());
    }
    Err(format!(
        "release name {name:?}: invalid release name, must match regex \
         ^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$ and the length must not be longer than 53"
    ))
}

fn is_label(text: &str) -> bool {
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = text.as_bytes();
    bytes.first().is_some_and(|byte| word(*byte))
        && bytes.last().is_some_and(|byte| word(*byte))
        && bytes.iter().all(|byte| word(*byte) || *byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn names_are_dns_names_of_at_most_53_characters() {
        for good in ["a", "shop-1", "1", "a.b-c.d", &"x".repeat(53)] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for bad in ["", "Shop", "a_b", "-a", "a-", "a..b", ".a", "a.", "a b", &"x".repeat(54)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
