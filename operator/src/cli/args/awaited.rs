//! Reads what `kubectl emco wait` waits for.

use std::str::FromStr;

/// What is waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// All clusters have what the deployment asks for now.
    Applied,
    /// `Ready` is True.
    Ready,
    /// All clusters have this revision.
    Revision(i64),
    /// This wave of its rollout is done, with all before it.
    Wave(String),
    /// The deployment is gone.
    Delete,
}

impl FromStr for Awaited {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        const WORDS: &str = "write applied, ready, revision=NUMBER, wave=NAME or delete";
        match text.split_once('=') {
            None if text == "applied" => Ok(Self::Applied),
            None if text == "ready" => Ok(Self::Ready),
            None if text == "delete" => Ok(Self::Delete),
            Some(("revision", number)) => match number.parse() {
                Ok(revision) if revision > 0 => Ok(Self::Revision(revision)),
                _ => Err(format!("{number:?} is no revision: write revision=3, for example")),
            },
            Some(("wave", name)) if !name.is_empty() => Ok(Self::Wave(name.to_owned())),
            _ => Err(WORDS.to_owned()),
        }
    }
}

impl Awaited {
    /// What a deployment is then.
    pub fn state(&self) -> String {
        match self {
            Self::Applied => "applied".to_owned(),
            Self::Ready => "ready".to_owned(),
            Self::Revision(revision) => format!("at revision {revision}"),
            Self::Wave(wave) => format!("done with wave {wave}"),
            Self::Delete => "gone".to_owned(),
        }
    }
}

impl std::fmt::Display for Awaited {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Applied => f.write_str("applied"),
            Self::Ready => f.write_str("ready"),
            Self::Revision(revision) => write!(f, "revision={revision}"),
            Self::Wave(wave) => write!(f, "wave={wave}"),
            Self::Delete => f.write_str("delete"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_and_others_are_refused() {
        for text in ["applied", "ready", "delete", "revision=3", "wave=canary"] {
            assert_eq!(text.parse::<Awaited>().unwrap().to_string(), text);
        }
        for (text, says) in [
            ("wave=", "write applied"),
            ("revision=0", "\"0\" is no revision"),
            ("revision=", "\"\" is no revision"),
            ("revision", "write applied, ready"),
            ("Ready", "write applied, ready"),
        ] {
            assert!(text.parse::<Awaited>().is_err_and(|why| why.contains(says)), "{text}");
        }
    }
}
