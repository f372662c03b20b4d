//! Evaluates an expression on an object within a number of steps.

use std::cmp::Ordering;
use std::rc::Rc;

use serde_json::Value;

use super::compile::{Binary, Fold, Node};
use super::value::{Val, equal, order};

/// Why an expression has no answer. Never says a value of the object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The object does not have this field.
    Absent(String),
    /// It costs more steps than there are.
    TooCostly,
    /// It answers something else than true or false.
    NotTruth(&'static str),
    /// A value is of a type, or in a range, that the expression does not take.
    Wrong(String),
}

impl Failure {
    pub(super) fn wrong(text: impl Into<String>) -> Self {
        Self::Wrong(text.into())
    }
}

/// What is left to be spent.
pub(super) struct Steps<'s>(&'s mut u64);

impl Steps<'_> {
    pub fn spend(&mut self, steps: u64) -> Result<(), Failure> {
        let left = self.0.checked_sub(steps);
        *self.0 = left.unwrap_or_default();
        left.map(drop).ok_or(Failure::TooCostly)
    }

    /// For a text that is read or made.
    pub fn bytes(&mut self, bytes: usize) -> Result<(), Failure> {
        self.spend(bytes as u64 / 16)
    }
}

pub(super) fn is_true(node: &Node, object: &Value, steps: &mut u64) -> Result<bool, Failure> {
    let mut run = Run { object, scopes: Vec::new(), steps: Steps(steps) };
    let answer = run.eval(node);
    // An operator may have got over what could not be paid.
    run.steps.spend(1)?;
    match answer? {
        Val::Bool(is) => Ok(is),
        other => Err(Failure::NotTruth(other.kind())),
    }
}

struct Run<'a, 's> {
    object: &'a Value,
    /// Names of comprehensions, the innermost last.
    scopes: Vec<(&'a str, Val<'a>)>,
    steps: Steps<'s>,
}

impl<'a> Run<'a, '_> {
    fn eval(&mut self, node: &'a Node) -> Result<Val<'a>, Failure> {
        self.steps.spend(1)?;
        match node {
            Node::Null => Ok(Val::Null),
            Node::Bool(is) => Ok(Val::Bool(*is)),
            Node::Int(number) => Ok(Val::Int(*number)),
            Node::Uint(number) => Ok(Val::Uint(*number)),
            Node::Double(number) => Ok(Val::Double(*number)),
            Node::Text(text) => Ok(Val::Text(text)),
            Node::List(items) => {
                let items: Vec<_> = items.iter().map(|item| self.eval(item)).collect::<Result<_, _>>()?;
                Ok(Val::MadeList(Rc::new(items)))
            }
            Node::Name(name) => self.name(name),
            Node::Field(operand, field) => match self.eval(operand)? {
                Val::Map(map) => map.get(field).map(Val::of).ok_or_else(|| Failure::Absent(field.clone())),
                other => Err(Failure::Wrong(format!("{} has no field {field}", other.kind()))),
            },
            Node::Has(operand, field) => match self.eval(operand)? {
                Val::Map(map) => Ok(Val::Bool(map.contains_key(field))),
                other => Err(Failure::Wrong(format!("{} has no field {field}", other.kind()))),
            },
            Node::Index(sides) => {
                let [of, at] = sides.as_ref();
                self.index(of, at)
            }
            Node::Not(inner) => self.truth(inner).map(|is| Val::Bool(!is)),
            Node::Negate(inner) => match self.eval(inner)? {
                Val::Int(number) => number.checked_neg().map(Val::Int).ok_or_else(overflow),
                Val::Double(number) => Ok(Val::Double(-number)),
                other => Err(Failure::Wrong(format!("{} cannot be negated", other.kind()))),
            },
            Node::And(sides) => self.logical(sides, false),
            Node::Or(sides) => self.logical(sides, true),
            Node::If(parts) => {
                let [condition, yes, no] = parts.as_ref();
                if self.truth(condition)? { self.eval(yes) } else { self.eval(no) }
            }
            Node::NotFalse(inner) => match self.eval(inner) {
                Err(Failure::TooCostly) => Err(Failure::TooCostly),
                Ok(Val::Bool(is)) => Ok(Val::Bool(is)),
                _ => Ok(Val::Bool(true)),
            },
            Node::Binary(operator, sides) => {
                let [left, right] = sides.as_ref();
                self.binary(*operator, left, right)
            }
            Node::Matches(text, regex, steps) => {
                let text = self.eval(text)?;
                let Some(text) = text.text() else {
                    return Err(Failure::Wrong(format!("matches is called with {}", text.kind())));
                };
                // The search goes through the text with all states of the pattern.
                self.steps.spend(text.len() as u64 * steps)?;
                Ok(Val::Bool(regex.is_match(text)))
            }
            Node::Call(function, arguments) => {
                let values: Vec<_> =
                    arguments.iter().map(|node| self.eval(node)).collect::<Result<_, _>>()?;
                function.call(&values, &mut self.steps)
            }
            Node::Fold(fold) => self.fold(fold),
        }
    }

    fn name(&self, name: &str) -> Result<Val<'a>, Failure> {
        if let Some((_, value)) = self.scopes.iter().rev().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        self.object.get(name).map(Val::of).ok_or_else(|| Failure::Absent(name.to_owned()))
    }

    fn truth(&mut self, node: &'a Node) -> Result<bool, Failure> {
        match self.eval(node)? {
            Val::Bool(is) => Ok(is),
            other => Err(Failure::Wrong(format!("{} stands where true or false has to", other.kind()))),
        }
    }

    /// `&&` and `||`: a side that decides does so whatever becomes of the other one.
    fn logical(&mut self, [left, right]: &'a [Node; 2], decides: bool) -> Result<Val<'a>, Failure> {
        let left = self.truth(left);
        if left == Ok(decides) || left == Err(Failure::TooCostly) {
            return left.map(Val::Bool);
        }
        let right = self.truth(right);
        match (left, right) {
            (_, Ok(right)) if right == decides => Ok(Val::Bool(decides)),
            (Err(failure), _) | (_, Err(failure)) => Err(failure),
            (Ok(_), Ok(right)) => Ok(Val::Bool(right)),
        }
    }

    fn index(&mut self, of: &'a Node, by: &'a Node) -> Result<Val<'a>, Failure> {
        // A key that is a value of the object is not named.
        let written = matches!(by, Node::Text(_));
        let (of, by) = (self.eval(of)?, self.eval(by)?);
        let wrong = || Failure::Wrong(format!("{} cannot be looked up in {}", by.kind(), of.kind()));
        match (&of, &by) {
            (Val::Map(map), key) => {
                let key = key.text().ok_or_else(wrong)?;
                map.get(key)
                    .map(Val::of)
                    .ok_or_else(|| Failure::Absent(if written { key } else { "[...]" }.to_owned()))
            }
            (Val::List(_) | Val::MadeList(_), Val::Int(at)) => usize::try_from(*at)
                .ok()
                .and_then(|at| of.item(at))
                .ok_or_else(|| Failure::Absent("[...]".to_owned())),
            _ => Err(wrong()),
        }
    }

    fn binary(&mut self, operator: Binary, left: &'a Node, right: &'a Node) -> Result<Val<'a>, Failure> {
        // `map` and `filter` add to what they have: it is taken, not copied.
        if let (Binary::Add, Node::Name(name)) = (operator, left)
            && self.scopes.last().is_some_and(|(known, _)| known == name)
        {
            let more = self.eval(right)?;
            let value = self.scopes.last_mut().map(|(_, value)| std::mem::replace(value, Val::Null));
            return self.add(value.unwrap_or(Val::Null), &more);
        }
        let (left, right) = (self.eval(left)?, self.eval(right)?);
        let wrong = |what: &str| Failure::Wrong(format!("{} and {} {what}", left.kind(), right.kind()));
        let ordered = |run: &mut Self, holds: fn(Ordering) -> bool| {
            let order = order(&left, &right, &mut run.steps)?;
            order.map(|order| Val::Bool(holds(order))).ok_or_else(|| wrong("cannot be compared"))
        };
        match operator {
            Binary::Equal => equal(&left, &right, &mut self.steps).map(Val::Bool),
            Binary::NotEqual => equal(&left, &right, &mut self.steps).map(|same| Val::Bool(!same)),
            Binary::Less => ordered(self, Ordering::is_lt),
            Binary::LessOrEqual => ordered(self, Ordering::is_le),
            Binary::Greater => ordered(self, Ordering::is_gt),
            Binary::GreaterOrEqual => ordered(self, Ordering::is_ge),
            Binary::In => match &right {
                Val::Map(map) => Ok(Val::Bool(left.text().is_some_and(|key| map.contains_key(key)))),
                list => {
                    let length = list.len().ok_or_else(|| wrong("cannot be used with in"))?;
                    for at in 0..length {
                        if let Some(item) = list.item(at)
                            && equal(&left, &item, &mut self.steps)?
                        {
                            return Ok(Val::Bool(true));
                        }
                    }
                    Ok(Val::Bool(false))
                }
            },
            Binary::Add => self.add(left, &right),
            Binary::Subtract | Binary::Multiply | Binary::Divide | Binary::Remainder => {
                arithmetic(operator, &left, &right)
            }
        }
    }

    fn add(&mut self, left: Val<'a>, right: &Val<'a>) -> Result<Val<'a>, Failure> {
        if let (Some(a), Some(b)) = (left.text(), right.text()) {
            self.steps.bytes(a.len() + b.len())?;
            return Ok(Val::made(&format!("{a}{b}")));
        }
        let (Some(left_items), Some(right_items)) = (list(&left), list(right)) else {
            return arithmetic(Binary::Add, &left, right);
        };
        let right = right.items().unwrap_or_default();
        self.steps.spend(right_items as u64)?;
        let made = match left {
            Val::MadeList(mut made) if Rc::strong_count(&made) == 1 => {
                Rc::make_mut(&mut made).extend(right);
                made
            }
            left => {
                self.steps.spend(left_items as u64)?;
                let mut items = left.items().unwrap_or_default();
                items.extend(right);
                Rc::new(items)
            }
        };
        Ok(Val::MadeList(made))
    }

    fn fold(&mut self, fold: &'a Fold) -> Result<Val<'a>, Failure> {
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init)?;
        let Some(length) = range.len() else {
            return Err(Failure::Wrong(format!("{} has no items to go through", range.kind())));
        };
        self.steps.spend(length as u64)?;
        let items = range.items().unwrap_or_default();
        let depth = self.scopes.len();
        let answer = self.fold_items(fold, items, init);
        self.scopes.truncate(depth);
        answer
    }

    fn fold_items(&mut self, fold: &'a Fold, items: Vec<Val<'a>>, init: Val<'a>) -> Result<Val<'a>, Failure> {
        let depth = self.scopes.len();
        let mut result = Ok(init);
        for item in items {
            self.scopes.truncate(depth);
            // An error is a result like any other until all items had their say: one of them may decide.
            let before = match result.clone() {
                Ok(value) => value,
                Err(failure) if !matches!(fold.goes_on, Node::NotFalse(_)) => return Err(failure),
                Err(failure) => {
                    let decided = self.decided(fold, &item)?;
                    result = decided.ok_or(failure);
                    if result.is_ok() {
                        break;
                    }
                    continue;
                }
            };
            drop(std::mem::replace(&mut result, Ok(Val::Null)));
            self.scopes.push((&fold.item, item));
            self.scopes.push((&fold.result, before.clone()));
            if !matches!(self.eval(&fold.goes_on)?, Val::Bool(true)) {
                result = Ok(before);
                break;
            }
            drop(before);
            result = match self.eval(&fold.step) {
                Err(Failure::TooCostly) => return Err(Failure::TooCostly),
                other => other,
            };
        }
        self.scopes.truncate(depth);
        self.scopes.push((&fold.result, result?));
        self.eval(&fold.answer)
    }

    /// What an item decides after another one failed, if it does: `exists` by true, `all` by false.
    fn decided(&mut self, fold: &'a Fold, item: &Val<'a>) -> Result<Option<Val<'a>>, Failure> {
        let (Node::And(sides) | Node::Or(sides)) = &fold.step else { return Ok(None) };
        let decides = matches!(fold.step, Node::Or(_));
        let depth = self.scopes.len();
        self.scopes.push((&fold.item, item.clone()));
        self.scopes.push((&fold.result, Val::Null));
        let [_, of_item] = sides.as_ref();
        let said = self.truth(of_item);
        self.scopes.truncate(depth);
        match said {
            Err(Failure::TooCostly) => Err(Failure::TooCostly),
            Ok(is) if is == decides => Ok(Some(Val::Bool(is))),
            _ => Ok(None),
        }
    }
}

fn list(value: &Val) -> Option<usize> {
    matches!(value, Val::List(_) | Val::MadeList(_)).then(|| value.len()).flatten()
}

fn overflow() -> Failure {
    Failure::wrong("a number is out of range")
}

fn arithmetic<'a>(operator: Binary, left: &Val<'a>, right: &Val<'a>) -> Result<Val<'a>, Failure> {
    match (left, right) {
        (Val::Int(a), Val::Int(b)) => match operator {
            Binary::Add => a.checked_add(*b),
            Binary::Subtract => a.checked_sub(*b),
            Binary::Multiply => a.checked_mul(*b),
            Binary::Divide => a.checked_div(*b),
            _ => a.checked_rem(*b),
        }
        .map(Val::Int)
        .ok_or_else(overflow),
        (Val::Uint(a), Val::Uint(b)) => match operator {
            Binary::Add => a.checked_add(*b),
            Binary::Subtract => a.checked_sub(*b),
            Binary::Multiply => a.checked_mul(*b),
            Binary::Divide => a.checked_div(*b),
            _ => a.checked_rem(*b),
        }
        .map(Val::Uint)
        .ok_or_else(overflow),
        (Val::Double(a), Val::Double(b)) if operator != Binary::Remainder => {
            Ok(Val::Double(match operator {
                Binary::Add => a + b,
                Binary::Subtract => a - b,
                Binary::Multiply => a * b,
                _ => a / b,
            }))
        }
        _ => Err(Failure::Wrong(format!("{} and {} cannot be calculated with", left.kind(), right.kind()))),
    }
}
