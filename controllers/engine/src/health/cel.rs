//! Expressions of health rules: parsed by the crate `cel`, evaluated here, for its evaluator has no bound on time and memory.
//!
//! The language is CEL without what a rule about one object does not need: no messages, map literals, bytes, times, optional
//! values. What is not known is refused when a rule is read, never answered.

mod compile;
mod eval;
mod functions;
mod scan;
mod value;

use std::fmt;

use serde_json::Value;

pub use eval::Failure;

/// Longest expression, in bytes.
pub const LONGEST: usize = 2048;
/// Steps of all expressions of a rule on one object. A step is a node of the expression, an item or 16 bytes of text.
pub const MOST_STEPS: u64 = 100_000;

/// A compiled expression that answers true or false.
pub struct Program {
    source: String,
    node: compile::Node,
}

impl Program {
    /// Compiles; the error is a phrase that goes on "its expression ...".
    pub fn compile(source: &str) -> Result<Self, String> {
        if source.len() > LONGEST {
            let length = source.len();
            return Err(format!("is {length} bytes long: shorten it to {LONGEST}"));
        }
        Ok(Self { node: compile::compile(source)?, source: source.to_owned() })
    }

    /// At least as many as it has patterns, which take memory as long as it lives.
    pub fn patterns(&self) -> usize {
        compile::patterns(&self.source)
    }

    /// Evaluates on an object, whose fields are the variables. What it costs is taken from `steps`.
    pub fn is_true(&self, object: &Value, steps: &mut u64) -> Result<bool, Failure> {
        eval::is_true(&self.node, object, steps)
    }
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl Eq for Program {}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)
    }
}

#[cfg(test)]
mod tests;
