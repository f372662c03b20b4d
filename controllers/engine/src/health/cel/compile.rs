//! Parses an expression and translates what health rules have of CEL; everything else is refused with a phrase.

use std::thread;

use cel::common::ast::operators as op;
use cel::common::ast::{CallExpr, ComprehensionExpr, Expr, LiteralValue};
use cel::parser::{Expression, ParseErrors, Parser};
use regex::Regex;

use super::functions::{Function, pattern};
use super::scan::obstacle;
use crate::conditions::truncate;

/// Deepest expression: evaluation goes as deep as it.
const DEEPEST: usize = 96;
/// Stack of the parser, which needs a few hundred bytes of it per byte of a text that is nested on purpose.
const STACK: usize = 16 * 1024 * 1024;
/// Most patterns of an expression: each is compiled when the rule is read, and kept.
const MOST_PATTERNS: usize = 4;
/// Longest complaint of the parser that is passed on.
const LONGEST_COMPLAINT: usize = 160;

/// An expression.
#[derive(Debug)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(String),
    List(Vec<Self>),
    /// A name: of a comprehension around it, else of a field of the object.
    Name(String),
    Field(Box<Self>, String),
    Has(Box<Self>, String),
    Index(Box<[Self; 2]>),
    Not(Box<Self>),
    Negate(Box<Self>),
    And(Box<[Self; 2]>),
    Or(Box<[Self; 2]>),
    If(Box<[Self; 3]>),
    /// Everything but an error and `false` is true.
    NotFalse(Box<Self>),
    Binary(Binary, Box<[Self; 2]>),
    /// With the steps of a search per byte of text.
    Matches(Box<Self>, Regex, u64),
    Call(Function, Vec<Self>),
    Fold(Box<Fold>),
}

/// An operator that needs both of its sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// What `all`, `exists`, `exists_one`, `map` and `filter` are.
#[derive(Debug)]
pub(super) struct Fold {
    pub range: Node,
    pub item: String,
    pub result: String,
    pub init: Node,
    pub goes_on: Node,
    pub step: Node,
    pub answer: Node,
}

/// Compiles; the error goes on "its expression ...".
pub(super) fn compile(source: &str) -> Result<Node, String> {
    if let Some(what) = obstacle(source) {
        return Err(what.to_owned());
    }
    if patterns(source) > MOST_PATTERNS {
        return Err(format!("says matches more than {MOST_PATTERNS} times: write one pattern with |"));
    }
    let text = source.to_owned();
    // A thread of its own: the parser is recursive, and a text may be nested as deep as it is long.
    let compiled = thread::Builder::new().stack_size(STACK).spawn(move || {
        let parsed = Parser::default().parse(&text).map_err(|errors| complaint(&errors))?;
        let node = translate(&parsed, 0)?;
        answers_truth(&node)?;
        Ok(node)
    });
    let compiled = compiled.map_err(|error| format!("cannot be compiled now: {error}"))?;
    compiled.join().unwrap_or_else(|_| Err("does not compile: the parser gave up".to_owned()))
}

/// At least as many patterns as an expression has.
pub(super) fn patterns(source: &str) -> usize {
    source.matches("matches").count()
}

fn complaint(errors: &ParseErrors) -> String {
    let Some(first) = errors.errors.first() else { return "does not compile".to_owned() };
    if first.msg.contains("Recursion limit") {
        return too_deep();
    }
    // What may stand there instead is most of the language.
    let said = first.msg.lines().next().unwrap_or_default();
    let said = truncate(said.split(" expecting {").next().unwrap_or_default(), LONGEST_COMPLAINT);
    format!("does not compile: line {}, column {}: {said}", first.pos.0, first.pos.1)
}

fn too_deep() -> String {
    format!("is nested deeper than {DEEPEST} levels: write it shorter")
}

fn translate(expression: &Expression, depth: usize) -> Result<Node, String> {
    if depth > DEEPEST {
        return Err(too_deep());
    }
    let next = |expression: &Expression| translate(expression, depth + 1);
    match &expression.expr {
        Expr::Literal(literal) => match literal {
            LiteralValue::Boolean(is) => Ok(Node::Bool(*is.inner())),
            LiteralValue::Double(number) => Ok(Node::Double(*number.inner())),
            LiteralValue::Int(number) => Ok(Node::Int(*number.inner())),
            LiteralValue::UInt(number) => Ok(Node::Uint(*number.inner())),
            LiteralValue::String(text) => Ok(Node::Text(text.inner().to_owned())),
            LiteralValue::Null => Ok(Node::Null),
            LiteralValue::Bytes(_) => Err(missing("bytes")),
        },
        Expr::Ident(name) => Ok(Node::Name(name.clone())),
        Expr::Select(select) => {
            let operand = Box::new(next(&select.operand)?);
            let field = select.field.clone();
            Ok(if select.test { Node::Has(operand, field) } else { Node::Field(operand, field) })
        }
        Expr::List(list) => list.elements.iter().map(next).collect::<Result<_, _>>().map(Node::List),
        Expr::Comprehension(fold) => fold_of(fold, depth).map(|fold| Node::Fold(Box::new(fold))),
        Expr::Call(call) => call_of(call, depth),
        Expr::Map(_) => Err(missing("map literals")),
        Expr::Struct(_) => Err(missing("messages")),
        Expr::Unspecified => Err("does not compile: a part of it is missing".to_owned()),
    }
}

fn missing(what: &str) -> String {
    format!("uses {what}, which health rules do not have")
}

fn fold_of(fold: &ComprehensionExpr, depth: usize) -> Result<Fold, String> {
    if fold.iter_var2.is_some() {
        return Err(missing("comprehensions with two variables"));
    }
    let next = |expression: &Expression| translate(expression, depth + 1);
    Ok(Fold {
        range: next(&fold.iter_range)?,
        item: fold.iter_var.clone(),
        result: fold.accu_var.clone(),
        init: next(&fold.accu_init)?,
        goes_on: next(&fold.loop_cond)?,
        step: next(&fold.loop_step)?,
        answer: next(&fold.result)?,
    })
}

fn call_of(call: &CallExpr, depth: usize) -> Result<Node, String> {
    let mut arguments = Vec::with_capacity(call.args.len() + 1);
    for argument in call.target.iter().map(AsRef::as_ref).chain(&call.args) {
        arguments.push(translate(argument, depth + 1)?);
    }
    let name = call.func_name.as_str();
    if let (Some(_), "matches", [_, Node::Text(text)]) = (&call.target, name, arguments.as_slice()) {
        let (regex, steps) = pattern(text)?;
        arguments.truncate(1);
        return one(arguments).map(|text| Node::Matches(text, regex, steps));
    }
    if name == "matches" {
        return Err("uses matches otherwise than as TEXT.matches('PATTERN')".to_owned());
    }
    match name {
        op::LOGICAL_NOT => one(arguments).map(Node::Not),
        op::NEGATE => one(arguments).map(Node::Negate),
        op::NOT_STRICTLY_FALSE => one(arguments).map(Node::NotFalse),
        op::LOGICAL_AND => two(arguments).map(Node::And),
        op::LOGICAL_OR => two(arguments).map(Node::Or),
        op::INDEX => two(arguments).map(Node::Index),
        op::CONDITIONAL => <[Node; 3]>::try_from(arguments).map(Box::new).map(Node::If).map_err(|_| arity()),
        // What it means elsewhere: a value whose type nobody asks for.
        "dyn" if arguments.len() == 1 => arguments.pop().ok_or_else(arity),
        _ => match binary(name) {
            Some(operator) => two(arguments).map(|sides| Node::Binary(operator, sides)),
            None => Function::find(name, call.target.is_some(), arguments.len())
                .map(|function| Node::Call(function, arguments)),
        },
    }
}

fn binary(name: &str) -> Option<Binary> {
    Some(match name {
        op::EQUALS => Binary::Equal,
        op::NOT_EQUALS => Binary::NotEqual,
        op::LESS => Binary::Less,
        op::LESS_EQUALS => Binary::LessOrEqual,
        op::GREATER => Binary::Greater,
        op::GREATER_EQUALS => Binary::GreaterOrEqual,
        op::IN => Binary::In,
        op::ADD => Binary::Add,
        op::SUBSTRACT => Binary::Subtract,
        op::MULTIPLY => Binary::Multiply,
        op::DIVIDE => Binary::Divide,
        op::MODULO => Binary::Remainder,
        _ => return None,
    })
}

fn arity() -> String {
    "does not compile: an operator lacks a side".to_owned()
}

fn one(mut arguments: Vec<Node>) -> Result<Box<Node>, String> {
    arguments.pop().filter(|_| arguments.is_empty()).map(Box::new).ok_or_else(arity)
}

fn two(arguments: Vec<Node>) -> Result<Box<[Node; 2]>, String> {
    <[Node; 2]>::try_from(arguments).map(Box::new).map_err(|_| arity())
}

/// Refuses what can never be true or false. What depends on the object is found when it is evaluated.
fn answers_truth(node: &Node) -> Result<(), String> {
    let what = match node {
        Node::Null => "null",
        Node::Int(_)
        | Node::Uint(_)
        | Node::Double(_)
        | Node::Negate(_)
        | Node::Binary(Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder, _) => {
            "a number"
        }
        Node::Text(_) => "text",
        Node::List(_) => "a list",
        Node::Call(function, _) if function.answers() != "true or false" => function.answers(),
        Node::Binary(Binary::Add, sides) => match sides.each_ref() {
            [Node::Text(_), _] | [_, Node::Text(_)] => "text",
            _ => "text, a number or a list",
        },
        Node::If(parts) => {
            let [_, yes, no] = parts.each_ref();
            answers_truth(yes)?;
            return answers_truth(no);
        }
        Node::Fold(fold) if matches!((&fold.answer, &fold.init), (Node::Name(_), Node::List(_))) => "a list",
        _ => return Ok(()),
    };
    Err(format!("answers {what}, not true or false"))
}
