//! Parsed templates: what the parser yields, the executor walks and error messages quote.
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use super::engine::Function;
use super::quoting::quote;

/// The text templates were parsed from, shared by all templates it defines.
#[derive(Debug)]
pub struct Source {
    /// The name errors report: a file, or `gotpl` for the text of `tpl`.
    pub name: String,
    pub text: Vec<u8>,
}

impl Source {
    /// The line (from 1) and byte column (from 0) of a position, as Go counts them in messages.
    pub fn line_column(&self, pos: usize) -> (usize, usize) {
        let before = self.text.get(..pos).unwrap_or(&self.text);
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        let column = memchr::memrchr(b'\n', before).map_or(pos, |newline| pos - newline - 1);
        (line, column)
    }
}

/// One named template.
#[derive(Debug)]
pub struct Template {
    pub name: String,
    pub source: Arc<Source>,
    pub root: List,
}

impl Template {
    /// Whether the template has nothing but space: such a template replaces no other.
    pub fn is_blank(&self) -> bool {
        self.root.nodes.iter().all(|node| match node {
            Node::Text(span) => {
                self.source.text.get(span.clone()).is_some_and(|text| text.trim_ascii().is_empty())
            }
            _ => false,
        })
    }
}

pub type Pos = u32;

#[derive(Debug, Default)]
pub struct List {
    pub nodes: Vec<Node>,
}

#[derive(Debug)]
pub enum Node {
    Text(Range<usize>),
    Action(Action),
    If(Branch),
    With(Branch),
    Range(Branch),
    Template(Invocation),
    Break(Pos),
    Continue(Pos),
}

/// `{{ pipeline }}`
#[derive(Debug)]
pub struct Action {
    pub pos: Pos,
    pub pipe: Pipe,
}

/// `if`, `with` and `range`.
#[derive(Debug)]
pub struct Branch {
    pub pos: Pos,
    pub pipe: Pipe,
    pub list: List,
    pub otherwise: Option<List>,
}

/// `{{ template "name" pipeline }}`
#[derive(Debug)]
pub struct Invocation {
    pub pos: Pos,
    pub name: String,
    pub pipe: Option<Pipe>,
}

#[derive(Debug)]
pub struct Pipe {
    pub pos: Pos,
    /// `=` rather than `:=`.
    pub is_assign: bool,
    pub decl: Vec<Variable>,
    pub commands: Vec<Command>,
}

#[derive(Debug)]
pub struct Command {
    pub pos: Pos,
    /// Never empty.
    pub first: Operand,
    pub rest: Vec<Operand>,
}

/// A variable's number within its source; `$` is 0.
pub type VariableId = u32;

#[derive(Debug)]
pub struct Variable {
    pub pos: Pos,
    pub id: VariableId,
    /// The name with its `$`.
    pub name: String,
    pub fields: Vec<Box<str>>,
}

#[derive(Debug)]
pub enum Operand {
    Dot(Pos),
    Nil(Pos),
    Bool(Pos, bool),
    Number(Box<Number>),
    Text(Box<Literal>),
    Field(Field),
    Variable(Variable),
    Identifier(Identifier),
    Pipe(Box<Pipe>),
    Chain(Box<Chain>),
}

#[derive(Debug)]
pub struct Field {
    pub pos: Pos,
    pub names: Vec<Box<str>>,
}

#[derive(Debug)]
pub struct Identifier {
    pub pos: Pos,
    pub name: String,
    pub function: Function,
}

/// `(pipeline).field` and `function.field`.
#[derive(Debug)]
pub struct Chain {
    pub pos: Pos,
    pub base: Operand,
    pub names: Vec<Box<str>>,
}

#[derive(Debug)]
pub struct Literal {
    pub pos: Pos,
    /// As written, with quotes.
    pub quoted: String,
    pub text: Vec<u8>,
}

/// A numeric constant in every type it fits.
#[derive(Debug, Default)]
pub struct Number {
    pub pos: Pos,
    pub text: String,
    pub int: Option<i64>,
    pub uint: Option<u64>,
    pub float: Option<f64>,
    pub complex: Option<(f64, f64)>,
}

impl Operand {
    pub fn pos(&self) -> Pos {
        match self {
            Self::Dot(pos) | Self::Nil(pos) | Self::Bool(pos, _) => *pos,
            Self::Number(number) => number.pos,
            Self::Text(literal) => literal.pos,
            Self::Field(field) => field.pos,
            Self::Variable(variable) => variable.pos,
            Self::Identifier(identifier) => identifier.pos,
            Self::Pipe(pipe) => pipe.pos,
            Self::Chain(chain) => chain.pos,
        }
    }
}

fn write_names(f: &mut fmt::Formatter<'_>, names: &[Box<str>]) -> fmt::Result {
    names.iter().try_for_each(|name| write!(f, ".{name}"))
}

impl fmt::Display for Operand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dot(_) => f.write_str("."),
            Self::Nil(_) => f.write_str("nil"),
            Self::Bool(_, value) => write!(f, "{value}"),
            Self::Number(number) => f.write_str(&number.text),
            Self::Text(literal) => f.write_str(&literal.quoted),
            Self::Field(field) => write_names(f, &field.names),
            Self::Variable(variable) => variable.fmt(f),
            Self::Identifier(identifier) => f.write_str(&identifier.name),
            Self::Pipe(pipe) => pipe.fmt(f),
            Self::Chain(chain) => chain.fmt(f),
        }
    }
}

impl Operand {
    /// The operand inside a command or chain, where pipelines have parentheses.
    fn fmt_nested(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Self::Pipe(pipe) = self { write!(f, "({pipe})") } else { fmt::Display::fmt(self, f) }
    }
}

impl fmt::Display for Chain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.base.fmt_nested(f)?;
        write_names(f, &self.names)
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        write_names(f, &self.fields)
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.first.fmt_nested(f)?;
        self.rest.iter().try_for_each(|operand| {
            f.write_str(" ")?;
            operand.fmt_nested(f)
        })
    }
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, variable) in self.decl.iter().enumerate() {
            write!(f, "{}{variable}", if index > 0 { ", " } else { "" })?;
        }
        if !self.decl.is_empty() {
            f.write_str(if self.is_assign { " = " } else { " := " })?;
        }
        for (index, command) in self.commands.iter().enumerate() {
            write!(f, "{}{command}", if index > 0 { " | " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Display for Invocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{{template {}", quote(self.name.as_bytes()))?;
        if let Some(pipe) = &self.pipe {
            write!(f, " {pipe}")?;
        }
        f.write_str("}}")
    }
}
