//! Go's `text/template`: text is parsed once into trees, and trees are executed over values into text.
pub(crate) mod ast;
pub(crate) mod engine;
pub(crate) mod exec;
mod lexer;
mod parser;
pub(crate) mod quoting;
pub(crate) mod set;
mod token;

#[cfg(test)]
mod conformance;

pub use parser::{ParseError, parse};
