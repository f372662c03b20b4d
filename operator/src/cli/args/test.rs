//! Arguments of the command that runs the tests of charts.

use std::time::Duration;

use clap::Args;

use super::Format;
use super::deployments::{AccountArgs, NamedDeployment, PartArgs};
use super::words::duration;

/// What is said at the end of the help of `test`.
pub(super) const TEST_EXIT_CODES: &str = "Exit codes: 0 all tests passed, or there are none, 1 an error, 2 a command line that cannot be \
                                          understood, 3 a test failed or could not be run.";

/// `kubectl emco test`.
#[derive(Args, Debug)]
pub struct TestArgs {
    /// Which.
    #[command(flatten)]
    pub named: NamedDeployment,
    /// Which part of it.
    #[command(flatten)]
    pub part: PartArgs,
    /// Only the test of this name, as name=NAME, or all but it, as `'!name=NAME'`; repeat, or separate by commas, for several.
    #[arg(long, value_name = "FILTER", value_delimiter = ',', value_parser = filter)]
    pub filter: Vec<NameFilter>,
    /// Print the logs of each test's Pods once it ended.
    #[arg(long)]
    pub logs: bool,
    /// How long each test may take.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = patience)]
    pub timeout: Duration,
    /// With which account.
    #[command(flatten)]
    pub account: AccountArgs,
    /// How the answer looks.
    #[arg(short, long, value_enum)]
    pub output: Option<Format>,
}

/// A test that is meant, or that is not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameFilter {
    /// The name of its object.
    pub name: String,
    /// All but it.
    pub not: bool,
}

fn filter(text: &str) -> Result<NameFilter, String> {
    let (not, rest) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
    match rest.split_once('=') {
        Some(("name", name)) if !name.is_empty() => Ok(NameFilter { name: name.to_owned(), not }),
        _ => Err("write name=NAME for one test, or '!name=NAME' for all but it".to_owned()),
    }
}

fn patience(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("a test needs some time to end: write 1s or more".to_owned()),
        some => Ok(some),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_names_a_test_as_helm_does() {
        let named = |name: &str, not| Ok(NameFilter { name: name.to_owned(), not });
        assert_eq!(filter("name=web-smoke"), named("web-smoke", false));
        assert_eq!(filter("!name=web-smoke"), named("web-smoke", true));
        for bad in ["", "web-smoke", "name=", "!name", "kind=Pod", "name!=x"] {
            assert!(filter(bad).is_err_and(|why| why.contains("name=NAME")), "{bad}");
        }
    }

    #[test]
    fn a_test_has_at_least_a_second() {
        assert_eq!(patience("90s"), Ok(Duration::from_secs(90)));
        assert!(patience("0m").is_err_and(|why| why.contains("1s or more")));
    }
}
