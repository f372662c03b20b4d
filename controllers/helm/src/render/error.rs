//! Says in one sentence why a render failed, and where.
use crate::limits::LimitError;
use crate::template::ParseError;
use crate::template::exec::ExecError;
use crate::template::exec::{Place, clean};

/// A failed render. The text is Helm's where Helm has one.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct RenderError {
    message: String,
    place: Option<Place>,
    limit: Option<LimitError>,
}

impl RenderError {
    pub(super) fn new(message: impl Into<String>) -> Self {
        let mut message = message.into();
        crate::limits::shorten(&mut message, 64 << 10);
        Self { message, place: None, limit: None }
    }

    pub(super) fn parse(file: &str, error: &ParseError) -> Self {
        // Helm shows the place and the last part of the message.
        let message = error.message.rsplit(": ").next().unwrap_or_default();
        Self {
            place: Some(Place { file: file.to_owned(), line: error.line, column: 0 }),
            ..Self::new(format!("parse error at ({}:{}): {message}", error.name, error.line))
        }
    }

    pub(super) fn exec(error: &ExecError) -> Self {
        Self { place: error.place().cloned(), limit: error.limit(), ..Self::new(clean(error)) }
    }

    pub(super) fn limited(limit: LimitError) -> Self {
        Self { limit: Some(limit), ..Self::new(limit.to_string()) }
    }

    /// The template, line and column the error is about.
    pub fn place(&self) -> Option<&Place> {
        self.place.as_ref()
    }

    /// The limit the chart passed, if that is why.
    pub fn limit(&self) -> Option<LimitError> {
        self.limit
    }
}
