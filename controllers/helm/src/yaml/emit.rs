//! Writes data as YAML text, byte for byte as Kubernetes' and Helm's writers print it.
mod scalar;

use std::borrow::Cow;

use super::YamlError;
use super::chars::width;
use super::sort::compare;

/// Lines longer than this are folded at spaces, in the flavor that folds.
const FOLD_WIDTH: usize = 80;
/// Longer keys are written after a `?`.
const SIMPLE_KEY_LENGTH: usize = 128;

/// Which of Helm's two writers to follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavor {
    /// `toYaml` and Kubernetes: sequences in their key's column, lines folded.
    Compact,
    /// `toYamlPretty`: sequences indented, no folding.
    Pretty,
}

/// One level of data to write.
pub(super) enum Shape<'a, V> {
    Null,
    Bool(bool),
    /// A number as it is written.
    Number(String),
    Text(Cow<'a, [u8]>),
    List(Vec<V>),
    Map(Vec<(Cow<'a, [u8]>, V)>),
}

/// Data that can be written.
pub(super) trait Source<'a>: Sized {
    fn shape(&self, depth: usize) -> Result<Shape<'a, Self>, YamlError>;
}

pub(super) struct Emitter {
    out: Vec<u8>,
    flavor: Flavor,
    /// Quotes the merge key, which the library writes bare, so that it reads back as text.
    safe: bool,
    indent: Option<usize>,
    column: usize,
    whitespace: bool,
    indention: bool,
}

/// Where a node stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Item,
    Value,
    /// A key before `:` on the same line.
    SimpleKey,
}

impl Emitter {
    pub fn new(flavor: Flavor, safe: bool) -> Self {
        Self { out: Vec::new(), flavor, safe, indent: None, column: 0, whitespace: true, indention: true }
    }

    /// Writes one document.
    pub fn document<'a, V: Source<'a>>(mut self, value: &V) -> Result<Vec<u8>, YamlError> {
        self.node(value, Place::Root, 0)?;
        self.write_indent();
        Ok(self.out)
    }

    fn node<'a, V: Source<'a>>(&mut self, value: &V, place: Place, depth: usize) -> Result<(), YamlError> {
        // Maps that share maps can be exponentially long.
        if !crate::limits::fits(self.out.len()) {
            return Err(YamlError::plain("the document is too long"));
        }
        match value.shape(depth)? {
            Shape::Null => self.plain_word(b"null"),
            Shape::Bool(true) => self.plain_word(b"true"),
            Shape::Bool(false) => self.plain_word(b"false"),
            Shape::Number(text) => self.plain_word(text.as_bytes()),
            Shape::Text(text) => self.scalar(&text, place),
            Shape::List(items) if items.is_empty() => self.flow_empty(b"[", b"]"),
            Shape::Map(entries) if entries.is_empty() => self.flow_empty(b"{", b"}"),
            Shape::List(items) => {
                let indentless = self.flavor == Flavor::Compact && place == Place::Value && !self.indention;
                let outer = self.increase_indent(false, indentless);
                for item in &items {
                    self.write_indent();
                    self.indicator(b"-", true, false, true);
                    self.node(item, Place::Item, depth + 1)?;
                }
                self.indent = outer;
            }
            Shape::Map(mut entries) => {
                let newer = self.flavor == Flavor::Pretty;
                entries.sort_by(|(a, _), (b, _)| compare(a, b, newer));
                let outer = self.increase_indent(false, false);
                for (key, value) in &entries {
                    self.entry(key, value, depth)?;
                }
                self.indent = outer;
            }
        }
        Ok(())
    }

    fn entry<'a, V: Source<'a>>(&mut self, key: &[u8], value: &V, depth: usize) -> Result<(), YamlError> {
        self.write_indent();
        if key.len() <= SIMPLE_KEY_LENGTH && !scalar::has_break(key) {
            self.scalar(key, Place::SimpleKey);
            self.indicator(b":", false, false, false);
        } else {
            self.indicator(b"?", true, false, true);
            self.scalar(key, Place::Value);
            self.write_indent();
            self.indicator(b":", true, false, true);
        }
        self.node(value, Place::Value, depth + 1)
    }

    fn flow_empty(&mut self, open: &[u8], close: &[u8]) {
        self.indicator(open, true, true, false);
        self.indicator(close, false, false, false);
    }

    /// Goes one level deeper and returns the level before.
    fn increase_indent(&mut self, flow: bool, indentless: bool) -> Option<usize> {
        let outer = self.indent;
        self.indent = match outer {
            None if flow => Some(2),
            None => Some(0),
            Some(indent) if indentless => Some(indent),
            Some(indent) => Some(indent + 2),
        };
        outer
    }

    /// Moves to the current indentation, on a new line where needed.
    fn write_indent(&mut self) {
        let indent = self.indent.unwrap_or(0);
        if !self.indention || self.column > indent || (self.column == indent && !self.whitespace) {
            self.put_break();
        }
        while self.column < indent {
            self.put(b' ');
        }
        self.whitespace = true;
        self.indention = true;
    }

    fn indicator(&mut self, text: &[u8], need_space: bool, is_space: bool, is_indention: bool) {
        if need_space && !self.whitespace {
            self.put(b' ');
        }
        self.out.extend_from_slice(text);
        self.column += text.len();
        self.whitespace = is_space;
        self.indention = self.indention && is_indention;
    }

    fn plain_word(&mut self, text: &[u8]) {
        if !self.whitespace {
            self.put(b' ');
        }
        self.out.extend_from_slice(text);
        self.column += text.len();
        self.whitespace = false;
        self.indention = false;
    }

    fn put(&mut self, byte: u8) {
        self.out.push(byte);
        self.column += 1;
    }

    fn put_break(&mut self) {
        self.out.push(b'\n');
        self.column = 0;
    }

    /// Copies one character and returns the position after it.
    fn write(&mut self, text: &[u8], i: usize) -> usize {
        let end = (i + text.get(i).map_or(1, |byte| width(*byte))).min(text.len());
        self.out.extend_from_slice(text.get(i..end).unwrap_or_default());
        self.column += 1;
        end
    }

    /// Copies one line break.
    fn write_break(&mut self, text: &[u8], i: usize) -> usize {
        let end = self.write(text, i);
        self.column = 0;
        end
    }

    fn too_wide(&self) -> bool {
        self.flavor == Flavor::Compact && self.column > FOLD_WIDTH
    }
}
