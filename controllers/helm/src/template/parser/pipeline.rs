//! Parses the tokens of one action into commands and operands.
use super::{Kind, Parsed, Parser, number, pos};
use crate::template::ast::{Chain, Command, Field, Identifier, Literal, Operand, Pipe, Variable, VariableId};
use crate::template::engine::Function;
use crate::template::quoting::{quote, unquote};
use crate::template::token::Token;

impl Parser<'_> {
    /// `declarations? command ('|' command)*` up to the `end` token, which is consumed.
    pub(super) fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Pipe> {
        let mut pipe = Pipe {
            pos: pos(&self.peek_non_space()),
            is_assign: false,
            decl: Vec::new(),
            commands: Vec::new(),
        };
        while self.declaration(context, &mut pipe)? {}
        loop {
            let token = self.next_non_space();
            match token.kind {
                kind if kind == end => break,
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.backup();
                    let command = self.command()?;
                    pipe.commands.push(command);
                }
                _ => return self.unexpected(&token, context),
            }
        }
        self.check(&pipe, context)?;
        Ok(pipe)
    }

    /// Reads one declared variable, if there is one. True when another may follow.
    fn declaration(&mut self, context: &str, pipe: &mut Pipe) -> Parsed<bool> {
        let variable = self.peek_non_space();
        if variable.kind != Kind::Variable {
            return Ok(false);
        }
        self.next();
        // In `$x foo` only `foo` tells that `$x` is an operand, so the space between is put back as well.
        let after = self.peek();
        let next = self.peek_non_space();
        match next.kind {
            Kind::Assign | Kind::Declare => {
                pipe.is_assign = next.kind == Kind::Assign;
                self.next_non_space();
                self.declare(&variable, pipe);
                Ok(false)
            }
            Kind::Char if self.text(&next) == b"," => {
                self.next_non_space();
                self.declare(&variable, pipe);
                if context != "range" || pipe.decl.len() >= 2 {
                    return self.fail(format!("too many declarations in {context}"));
                }
                match self.peek_non_space().kind {
                    Kind::Variable | Kind::RightDelim | Kind::RightParen => Ok(true),
                    _ => self.fail("range can only initialize variables"),
                }
            }
            _ => {
                if after.kind == Kind::Space {
                    self.backup3(variable, after);
                } else {
                    self.backup2(variable);
                }
                Ok(false)
            }
        }
    }

    fn declare(&mut self, token: &Token, pipe: &mut Pipe) {
        let variable = self.variable(token);
        self.scope.push(variable.id);
        pipe.decl.push(variable);
    }

    fn variable(&mut self, token: &Token) -> Variable {
        let name = self.string(token);
        let fresh = VariableId::try_from(self.names.len()).unwrap_or(VariableId::MAX);
        let id = *self.names.entry(name.clone()).or_insert(fresh);
        Variable { pos: pos(token), id, name, fields: Vec::new() }
    }

    fn check(&self, pipe: &Pipe, context: &str) -> Parsed<()> {
        if pipe.commands.is_empty() {
            return self.fail(format!("missing value for {context}"));
        }
        for (index, command) in pipe.commands.iter().enumerate().skip(1) {
            if matches!(
                command.first,
                Operand::Bool(..) | Operand::Dot(_) | Operand::Nil(_) | Operand::Number(_) | Operand::Text(_)
            ) {
                return self.fail(format!("non executable command in pipeline stage {}", index + 1));
            }
        }
        Ok(())
    }

    /// Operands separated by space. A pipe symbol after it is consumed, so a trailing one is accepted as Go does.
    fn command(&mut self) -> Parsed<Command> {
        let at = pos(&self.peek_non_space());
        let mut operands = Vec::new();
        loop {
            self.peek_non_space();
            if let Some(operand) = self.operand()? {
                operands.push(operand);
            }
            let token = self.next();
            match token.kind {
                Kind::Space => {}
                Kind::RightDelim | Kind::RightParen => {
                    self.backup();
                    break;
                }
                Kind::Pipe => break,
                _ => return self.unexpected(&token, "operand"),
            }
        }
        let mut operands = operands.into_iter();
        match operands.next() {
            Some(first) => Ok(Command { pos: at, first, rest: operands.collect() }),
            None => self.fail("empty command"),
        }
    }

    /// A term and the fields that follow it; `None` when no operand comes next.
    fn operand(&mut self) -> Parsed<Option<Operand>> {
        let Some(term) = self.term()? else { return Ok(None) };
        let next = self.peek();
        if next.kind != Kind::Field {
            return Ok(Some(term));
        }
        let at = pos(&next);
        let mut names = Vec::new();
        while self.peek().kind == Kind::Field {
            let token = self.next();
            names.push(self.field_name(&token));
        }
        Ok(Some(match term {
            Operand::Field(mut field) => {
                field.pos = at;
                field.names.append(&mut names);
                Operand::Field(field)
            }
            Operand::Variable(mut variable) => {
                variable.pos = at;
                variable.fields.append(&mut names);
                Operand::Variable(variable)
            }
            Operand::Bool(..) | Operand::Text(_) | Operand::Number(_) | Operand::Nil(_) | Operand::Dot(_) => {
                let shown = quote(term.to_string().as_bytes());
                return self.fail(format!("unexpected . after term {shown}"));
            }
            base => Operand::Chain(Box::new(Chain { pos: at, base, names })),
        }))
    }

    fn field_name(&self, token: &Token) -> Box<str> {
        self.string(token).get(1..).unwrap_or_default().into()
    }

    fn term(&mut self) -> Parsed<Option<Operand>> {
        let token = self.next_non_space();
        let at = pos(&token);
        Ok(Some(match token.kind {
            Kind::Identifier => {
                let name = self.string(&token);
                match Function::find(&name) {
                    Some(function) => Operand::Identifier(Identifier { pos: at, name, function }),
                    None => return self.fail(format!("function {} not defined", quote(name.as_bytes()))),
                }
            }
            Kind::Dot => Operand::Dot(at),
            Kind::Nil => Operand::Nil(at),
            Kind::Variable => {
                let variable = self.variable(&token);
                if !self.scope.contains(&variable.id) {
                    return self.fail(format!("undefined variable {}", quote(variable.name.as_bytes())));
                }
                Operand::Variable(variable)
            }
            Kind::Field => Operand::Field(Field { pos: at, names: vec![self.field_name(&token)] }),
            Kind::Bool => Operand::Bool(at, self.text(&token) == b"true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => {
                let text = self.string(&token);
                match number::parse(at, &text, token.kind) {
                    Ok(number) => Operand::Number(Box::new(number)),
                    Err(message) => return self.fail(message),
                }
            }
            Kind::LeftParen => {
                self.nest()?;
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
                self.nesting -= 1;
                Operand::Pipe(Box::new(pipe))
            }
            Kind::String | Kind::RawString => match unquote(self.text(&token)) {
                Some(text) => Operand::Text(Box::new(Literal { pos: at, quoted: self.string(&token), text })),
                None => return self.fail("invalid syntax"),
            },
            _ => {
                self.backup();
                return Ok(None);
            }
        }))
    }
}
