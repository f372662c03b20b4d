//! Evaluates pipelines, commands and operands.
use super::slot::Slot;
use super::{At, ExecError, State};
use crate::template::ast::{Chain, Command, Field, Number, Operand, Pipe, Variable, VariableId};
use crate::value::Value;

impl<'a> State<'a> {
    /// The value of a pipeline; variables it declares stay on the stack.
    pub(super) fn pipeline(&mut self, dot: &Slot, pipe: &'a Pipe) -> Result<Slot, ExecError> {
        self.at = Some(At::Pipe(pipe));
        self.render.guard.check().map_err(|limit| self.limit(limit))?;
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(dot, command, value)?.stripped());
        }
        let value = value.unwrap_or(Slot::ABSENT);
        for variable in &pipe.decl {
            if pipe.is_assign {
                self.assign(variable, value.clone())?;
            } else {
                self.vars.push((variable.id, value.clone()));
            }
        }
        Ok(value)
    }

    pub(super) fn assign(&mut self, variable: &Variable, value: Slot) -> Result<(), ExecError> {
        match self.vars.iter_mut().rev().find(|(id, _)| *id == variable.id) {
            Some((_, slot)) => {
                *slot = value;
                Ok(())
            }
            None => Err(self.undefined(&variable.name)),
        }
    }

    fn variable_value(&self, id: VariableId, name: &str) -> Result<&Slot, ExecError> {
        match self.vars.iter().rev().find(|(known, _)| *known == id) {
            Some((_, slot)) => Ok(slot),
            None => Err(self.undefined(name)),
        }
    }

    fn undefined(&self, name: &str) -> ExecError {
        self.error(format!("undefined variable: {name}"))
    }

    fn command(&mut self, dot: &Slot, command: &'a Command, last: Option<Slot>) -> Result<Slot, ExecError> {
        let args = &command.rest;
        match &command.first {
            Operand::Field(field) => return self.field_node(dot, field, args, last),
            Operand::Chain(chain) => return self.chain_node(dot, chain, args, last),
            Operand::Identifier(identifier) => {
                return self.call_function(dot, identifier, At::Command(command), args, last);
            }
            Operand::Pipe(pipe) => {
                self.not_a_function(command, last.as_ref())?;
                return self.pipeline(dot, pipe);
            }
            Operand::Variable(variable) => {
                return self.variable_node(dot, variable, Some(command), args, last);
            }
            _ => {}
        }
        self.at = Some(At::Operand(&command.first));
        self.not_a_function(command, last.as_ref())?;
        match &command.first {
            Operand::Bool(_, value) => Ok(Slot::of(Value::Bool(*value))),
            Operand::Dot(_) => Ok(dot.clone()),
            Operand::Nil(_) => Err(self.error("nil is not a command")),
            Operand::Number(number) => self.ideal_constant(number),
            Operand::Text(literal) => Ok(Slot::of(Value::text(literal.text.as_slice()))),
            other => Err(self.error(format!("can't evaluate command \"{other}\""))),
        }
    }

    fn not_a_function(&self, command: &Command, last: Option<&Slot>) -> Result<(), ExecError> {
        if command.rest.is_empty() && last.is_none() {
            return Ok(());
        }
        Err(self.error(format!("can't give argument to non-function {}", command.first)))
    }

    pub(super) fn field_node(
        &mut self,
        dot: &Slot,
        field: &'a Field,
        args: &'a [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, ExecError> {
        self.at = Some(At::Field(field));
        self.field_chain(dot, dot.clone(), At::Field(field), &field.names, args, last)
    }

    pub(super) fn chain_node(
        &mut self,
        dot: &Slot,
        chain: &'a Chain,
        args: &'a [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, ExecError> {
        self.at = Some(At::Chain(chain));
        if matches!(chain.base, Operand::Nil(_)) {
            return Err(self.error(format!("indirection through explicit nil in {chain}")));
        }
        let base = match &chain.base {
            Operand::Pipe(pipe) => {
                self.at = Some(At::Operand(&chain.base));
                self.pipeline(dot, pipe)?
            }
            Operand::Identifier(identifier) => {
                self.at = Some(At::Operand(&chain.base));
                self.call_function(dot, identifier, At::Identifier(identifier), &[], None)?
            }
            other => return Err(self.error(format!("can't evaluate command \"{other}\""))),
        };
        self.field_chain(dot, base, At::Chain(chain), &chain.names, args, last)
    }

    pub(super) fn variable_node(
        &mut self,
        dot: &Slot,
        variable: &'a Variable,
        command: Option<&'a Command>,
        args: &'a [Operand],
        last: Option<Slot>,
    ) -> Result<Slot, ExecError> {
        self.at = Some(At::Variable(variable));
        let value = self.variable_value(variable.id, &variable.name)?.clone();
        if variable.fields.is_empty() {
            if let Some(command) = command {
                self.not_a_function(command, last.as_ref())?;
            }
            return Ok(value);
        }
        self.field_chain(dot, value, At::Variable(variable), &variable.fields, args, last)
    }

    /// A number where nothing says which type it should have: its syntax decides.
    pub(super) fn ideal_constant(&mut self, number: &'a Number) -> Result<Slot, ExecError> {
        if let Some((re, im)) = number.complex {
            return Ok(Slot::of(Value::Complex(re, im)));
        }
        let text = &number.text;
        let is_char = text.starts_with('\'');
        let is_hex_int = (text.starts_with("0x") || text.starts_with("0X")) && !text.contains(['p', 'P']);
        if let (Some(float), false, false) = (number.float, is_char, is_hex_int)
            && text.contains(['.', 'e', 'E', 'p', 'P'])
        {
            return Ok(Slot::of(Value::Float(float)));
        }
        match number.int {
            Some(int) => Ok(Slot::of(Value::int(int))),
            None => Err(self.error(format!("{text} overflows int"))),
        }
    }
}
