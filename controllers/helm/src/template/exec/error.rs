//! Makes Go's message of an execution error, with file, line and column.
use std::fmt;
use std::sync::Arc;

use super::{At, State};
use crate::limits::LimitError;
use crate::template::ast::Pos;
use crate::template::quoting::quote;

/// Longer messages keep their end, and of what is wrapped around them only the outermost level, which is the file that people
/// know: each level of a deep recursion would add its own line of text.
const MAX_MESSAGE: usize = 32 << 10;

/// Where in which text an error happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, or `gotpl` inside the text of a `tpl` call.
    pub file: String,
    pub line: usize,
    /// Bytes from the start of the line.
    pub column: usize,
}

/// A failed execution.
#[derive(Clone, Debug)]
pub struct ExecError(Box<Failure>);

#[derive(Clone, Debug)]
struct Failure {
    /// Go's whole message.
    message: String,
    /// What follows the place in the message.
    detail: String,
    /// The outermost place; `None` for errors outside any template.
    place: Option<Place>,
    limit: Option<LimitError>,
    /// Of a message that is too long: its end, which stays, and how many levels between it and the outermost are left out.
    end: Option<(Arc<str>, usize)>,
}

impl ExecError {
    /// An error that is not about a node.
    pub fn plain(message: String) -> Self {
        Self(Box::new(Failure { detail: message.clone(), message, place: None, limit: None, end: None }))
    }

    pub fn place(&self) -> Option<&Place> {
        self.0.place.as_ref()
    }

    pub fn limit(&self) -> Option<LimitError> {
        self.0.limit
    }

    /// The message without `template: PLACE: `.
    pub fn detail(&self) -> &str {
        &self.0.detail
    }
}

impl fmt::Display for ExecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for ExecError {}

impl At<'_> {
    fn pos(&self) -> Pos {
        match self {
            At::Operand(operand) => operand.pos(),
            At::Field(field) => field.pos,
            At::Variable(variable) => variable.pos,
            At::Identifier(identifier) => identifier.pos,
            At::Chain(chain) => chain.pos,
            At::Command(command) => command.pos,
            At::Pipe(pipe) => pipe.pos,
            At::Invocation(invocation) => invocation.pos,
        }
    }
}

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Operand(operand) => operand.fmt(f),
            At::Field(field) => field.names.iter().try_for_each(|name| write!(f, ".{name}")),
            At::Variable(variable) => variable.fmt(f),
            At::Identifier(identifier) => f.write_str(&identifier.name),
            At::Chain(chain) => chain.fmt(f),
            At::Command(command) => command.fmt(f),
            At::Pipe(pipe) => pipe.fmt(f),
            At::Invocation(invocation) => invocation.fmt(f),
        }
    }
}

impl State<'_> {
    /// An error about the current node.
    pub(super) fn error(&self, message: impl AsRef<str>) -> ExecError {
        self.failure(message.as_ref(), None)
    }

    pub(super) fn limit(&self, limit: LimitError) -> ExecError {
        self.failure(&limit.to_string(), Some(limit))
    }

    /// Wraps the error of a called function or template; a passed limit stays known as such.
    pub(super) fn wrap(&self, prefix: &str, inner: &ExecError) -> ExecError {
        if inner.0.message.len() <= MAX_MESSAGE {
            return self.failure(&format!("{prefix}{inner}"), inner.0.limit);
        }
        let (end, left_out) = match &inner.0.end {
            Some((end, left_out)) => (Arc::clone(end), left_out + 1),
            None => (Arc::from(inner.0.message.as_str()), 0),
        };
        let left = if left_out > 0 { format!("[{left_out} further calls]: ") } else { String::new() };
        let mut outer = self.failure(&format!("{prefix}{left}{end}"), inner.0.limit);
        outer.0.end = Some((end, left_out));
        outer
    }

    fn failure(&self, message: &str, limit: Option<LimitError>) -> ExecError {
        let name = &self.template.name;
        let Some(at) = &self.at else {
            let message = format!("template: {name}: {message}");
            return ExecError(Box::new(Failure {
                detail: message.clone(),
                message,
                place: None,
                limit,
                end: None,
            }));
        };
        let source = &self.template.source;
        let pos = usize::try_from(at.pos()).unwrap_or(usize::MAX);
        let (line, column) = source.line_column(pos);
        let mut detail = format!("executing {} at <{at}>: {message}", quote(name.as_bytes()));
        crate::limits::shorten(&mut detail, 4 * MAX_MESSAGE);
        ExecError(Box::new(Failure {
            message: format!("template: {}:{line}:{column}: {detail}", source.name),
            detail,
            place: Some(Place { file: source.name.clone(), line, column }),
            limit,
            end: None,
        }))
    }
}
