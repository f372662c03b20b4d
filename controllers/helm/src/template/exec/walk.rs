//! Walks the nodes of a template (lists, branches, loops, invocations) and prints their text.
use super::slot::{Form, Slot};
use super::{At, ExecError, NO_VALUE, State};
use crate::template::ast::{Branch, Invocation, List, Node};
use crate::value::{Kind, ListType, MapType, Value};

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break,
    Continue,
}

impl<'a> State<'a> {
    pub(super) fn list(&mut self, dot: &Slot, list: &'a List, out: &mut Vec<u8>) -> Result<Flow, ExecError> {
        for node in &list.nodes {
            let flow = match node {
                Node::Text(span) => {
                    let text = self.template.source.text.get(span.clone()).unwrap_or_default();
                    self.write(text, out)?;
                    Flow::Next
                }
                Node::Action(action) => {
                    let value = self.pipeline(dot, &action.pipe)?;
                    if action.pipe.decl.is_empty() {
                        self.print(&value.value, out)?;
                    }
                    Flow::Next
                }
                Node::If(branch) => self.branch(dot, branch, false, out)?,
                Node::With(branch) => self.branch(dot, branch, true, out)?,
                Node::Range(branch) => self.range(dot, branch, out)?,
                Node::Template(invocation) => {
                    self.invoke(dot, invocation, out)?;
                    Flow::Next
                }
                Node::Break(_) => Flow::Break,
                Node::Continue(_) => Flow::Continue,
            };
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn write(&self, text: &[u8], out: &mut Vec<u8>) -> Result<(), ExecError> {
        self.render.shared.meter.print(text.len()).map_err(|limit| self.limit(limit))?;
        out.extend_from_slice(text);
        Ok(())
    }

    fn print(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), ExecError> {
        match value {
            Value::Nil => self.write(NO_VALUE, out),
            Value::Text(text) => self.write(text.as_bytes(), out),
            Value::Bool(value) => self.write(if *value { b"true" } else { b"false" }, out),
            Value::Int(int) => self.write(int.to_string().as_bytes(), out),
            Value::Object(object) if object.print().is_some() => {
                self.write(&object.print().unwrap_or_default(), out)
            }
            other => {
                let text = self.library("print", std::slice::from_ref(other))?;
                self.write(text.as_text().map(AsRef::as_ref).unwrap_or_default(), out)
            }
        }
    }

    /// `if` and `with`.
    fn branch(
        &mut self,
        dot: &Slot,
        branch: &'a Branch,
        is_with: bool,
        out: &mut Vec<u8>,
    ) -> Result<Flow, ExecError> {
        let mark = self.vars.len();
        let value = self.pipeline(dot, &branch.pipe)?;
        let flow = if value.value.truth() {
            self.list(if is_with { &value } else { dot }, &branch.list, out)?
        } else if let Some(otherwise) = &branch.otherwise {
            self.list(dot, otherwise, out)?
        } else {
            Flow::Next
        };
        self.vars.truncate(mark);
        Ok(flow)
    }

    fn range(&mut self, dot: &Slot, branch: &'a Branch, out: &mut Vec<u8>) -> Result<Flow, ExecError> {
        let mark = self.vars.len();
        let over = self.pipeline(dot, &branch.pipe)?.value;
        let over = match &over {
            Value::Object(object) if matches!(object.kind(), Kind::Slice | Kind::Map) => object.plain(),
            _ => over,
        };
        let flow = match &over {
            Value::List(list) if !list.is_empty() => {
                let form = if list.list_type() == ListType::Any { Form::Interface } else { Form::Concrete };
                let items = list.items().iter().enumerate().map(|(index, item)| {
                    let index = Value::int(i64::try_from(index).unwrap_or(i64::MAX));
                    (index, Slot { value: item.clone(), form })
                });
                self.turns(branch, items, out)?
            }
            Value::Map(map) if !map.is_empty() => {
                let form = if map.map_type() == MapType::String { Form::Concrete } else { Form::Interface };
                let entries = map.entries();
                let charged = entries.len() * size_of::<(Value, Value)>();
                self.render.shared.meter.charge(charged).map_err(|limit| self.limit(limit))?;
                let items = entries.into_iter().map(|(key, value)| (Value::Text(key), Slot { value, form }));
                self.turns(branch, items, out)?
            }
            Value::Nil | Value::List(_) | Value::Map(_) => match &branch.otherwise {
                Some(otherwise) => self.list(dot, otherwise, out)?,
                None => Flow::Next,
            },
            other => {
                let shown = self.library("print", std::slice::from_ref(other))?;
                let shown = shown.as_text().map(|text| text.lossy().into_owned()).unwrap_or_default();
                return Err(self.error(format!("range can't iterate over {shown}")));
            }
        };
        self.vars.truncate(mark);
        // A `break` ends this loop and no outer one.
        Ok(if flow == Flow::Break { Flow::Next } else { flow })
    }

    fn turns(
        &mut self,
        branch: &'a Branch,
        items: impl Iterator<Item = (Value, Slot)>,
        out: &mut Vec<u8>,
    ) -> Result<Flow, ExecError> {
        let mark = self.vars.len();
        let decl = &branch.pipe.decl;
        for (index, item) in items {
            self.render.shared.meter.iterate().map_err(|limit| self.limit(limit))?;
            let index = Slot::of(index);
            if branch.pipe.is_assign {
                match decl.as_slice() {
                    [one] => self.assign(one, item.clone())?,
                    [first, second] => {
                        self.assign(first, index)?;
                        self.assign(second, item.clone())?;
                    }
                    _ => {}
                }
            } else {
                // The pipeline declared the variables; the last one is the item.
                if let (true, Some(top)) = (!decl.is_empty(), self.vars.last_mut()) {
                    top.1 = item.clone();
                }
                let below = if decl.len() > 1 { self.vars.len().checked_sub(2) } else { None };
                if let Some(below) = below.and_then(|below| self.vars.get_mut(below)) {
                    below.1 = index;
                }
            }
            let flow = self.list(&item, &branch.list, out)?;
            self.vars.truncate(mark);
            if flow == Flow::Break {
                return Ok(Flow::Break);
            }
        }
        Ok(Flow::Next)
    }

    fn invoke(&mut self, dot: &Slot, invocation: &'a Invocation, out: &mut Vec<u8>) -> Result<(), ExecError> {
        self.at = Some(At::Invocation(invocation));
        let Some(template) = self.scope.get(&invocation.name) else {
            let name = crate::template::quoting::quote(invocation.name.as_bytes());
            return Err(self.error(format!("template {name} not defined")));
        };
        let dot = match &invocation.pipe {
            Some(pipe) => self.pipeline(dot, pipe)?,
            None => Slot::ABSENT,
        };
        self.render.guard.check().map_err(|limit| self.limit(limit))?;
        self.render.execute(self.scope, template, &dot, out)
    }
}
