//! A filter and a format come in; logs go to standard error, and the filter can be changed while the process runs.

use anyhow::Context as _;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, fmt};

use crate::args::LogFormat;

use one_line::OneLine;

mod one_line;

/// Longest filter.
const LONGEST: usize = 1024;
/// These print headers and bodies, in which there are tokens, at their finer levels: nobody gets those.
const QUIET: [&str; 9] =
    ["h2", "hyper", "hyper_util", "kube", "kube_client", "rustls", "tokio_rustls", "tower", "tower_http"];
/// The library's watches, which log each failure with all its parts.
const WATCHES: &str = "kube_runtime";

/// Changes what is logged.
#[derive(Clone)]
pub struct LogFilter(reload::Handle<EnvFilter, Registry>);

impl LogFilter {
    /// What is logged now.
    pub fn shown(&self) -> String {
        self.0.with_current(ToString::to_string).unwrap_or_default()
    }

    /// Logs by another filter from now on. The error is a sentence.
    pub fn change(&self, text: &str) -> Result<(), String> {
        let filter = filter(text)?;
        self.0.reload(filter).map_err(|error| format!("the log filter cannot be changed: {error}"))
    }
}

/// Starts logging.
pub fn start(text: &str, format: LogFormat) -> anyhow::Result<LogFilter> {
    let (filter, handle) = reload::Layer::new(filter(text).map_err(anyhow::Error::msg)?);
    let registry = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Text => {
            let layer = fmt::layer().with_writer(OneLine(std::io::stderr)).with_ansi(false);
            registry.with(layer).try_init()
        }
        LogFormat::Json => {
            let layer = fmt::layer().json().flatten_event(true).with_writer(OneLine(std::io::stderr));
            registry.with(layer).try_init()
        }
    }
    .context("logging cannot be started")?;
    Ok(LogFilter(handle))
}

/// Checks a filter as the command line gives it.
pub fn parse(text: &str) -> Result<String, String> {
    filter(text).map(|_| text.to_owned())
}

fn filter(text: &str) -> Result<EnvFilter, String> {
    if text.len() > LONGEST {
        return Err(format!("a log filter has at most {LONGEST} bytes"));
    }
    let target = |part: &str| part.split(['=', '[']).next().unwrap_or_default().trim().to_owned();
    let loud = |part: &str| {
        let target = target(part);
        QUIET.iter().any(|quiet| target == *quiet || target.starts_with(&format!("{quiet}::")))
    };
    if let Some(part) = text.split(',').find(|part| loud(part)) {
        return Err(format!("{} cannot be chosen: its log may hold credentials", target(part)));
    }
    let mut filter = EnvFilter::try_new(text.trim()).map_err(|error| {
        format!(
            "{error}: write a level (error, warn, info, debug, trace) or target=level, separated by commas"
        )
    })?;
    for quiet in QUIET {
        let directive = format!("{quiet}=warn").parse().map_err(|error| format!("{quiet}: {error}"))?;
        filter = filter.add_directive(directive);
    }
    // It prints whole answers of the hub where a watch is interrupted, which our own lines say in one sentence.
    if !text.contains(WATCHES) {
        let directive = format!("{WATCHES}=error").parse().map_err(|error| format!("{WATCHES}: {error}"))?;
        filter = filter.add_directive(directive);
    }
    Ok(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_targets_are_read_and_transports_stay_quiet() {
        let shown = filter("trace,emco_controllers::sync=debug").unwrap().to_string();
        assert!(shown.contains("emco_controllers::sync=debug") && shown.contains("h2=warn"), "{shown}");
    }

    #[test]
    fn what_may_log_credentials_cannot_be_chosen() {
        for text in ["h2=trace", "info,hyper::client=debug", "tower_http[request]=trace"] {
            let error = filter(text).unwrap_err();
            assert!(error.contains("credentials"), "{error}");
        }
    }

    #[test]
    fn a_bad_filter_gets_a_sentence() {
        assert!(filter("emco=loud").unwrap_err().contains("write a level"));
        assert!(filter(&"x".repeat(2000)).unwrap_err().contains("at most 1024 bytes"));
    }
}
