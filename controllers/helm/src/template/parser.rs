//! Parses template text into the templates it defines.
//!
//! This file holds the token window and the block structure; pipelines and numbers have files of their own.
mod number;
mod pipeline;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::{Action, Branch, Invocation, List, Node, Pos, Source, Template, VariableId};
use super::lexer::Lexer;
use super::quoting::{quote, unquote};
use super::token::{Kind, Token};

/// Deepest nesting of blocks and parentheses. Trees are dropped by recursion, on stacks of any size.
const MAX_NESTING: usize = 1000;

/// Why text is no template, in Go's words: `template: NAME:LINE: message`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("template: {name}:{line}: {message}")]
pub struct ParseError {
    pub name: String,
    pub line: usize,
    pub message: String,
}

/// Parses a text and yields the templates it defines, its own last (unless it is blank and another has its name).
pub fn parse(name: &str, text: Vec<u8>) -> Result<Vec<Arc<Template>>, ParseError> {
    let source = Arc::new(Source { name: name.to_owned(), text });
    let mut parser = Parser {
        source: &source,
        lexer: Lexer::new(&source.text),
        tokens: [END, END, END],
        peeked: 0,
        names: BTreeMap::from([("$".to_owned(), 0)]),
        scope: vec![0],
        action_line: 0,
        range_depth: 0,
        nesting: 0,
        defined: BTreeMap::new(),
    };
    let root = parser.top_level()?;
    parser.add(name.to_owned(), root)?;
    Ok(parser.defined.into_values().collect())
}

const END: Token = Token { kind: Kind::Eof, span: 0..0, line: 0, error: None };

type Parsed<T> = Result<T, ParseError>;

/// What ends a list of nodes.
enum Terminator {
    End,
    Else,
}

enum Item {
    Node(Node),
    Terminator(Terminator),
}

struct Parser<'s> {
    source: &'s Arc<Source>,
    lexer: Lexer<'s>,
    /// A window for up to three tokens that were put back; the first holds the newest token.
    tokens: [Token; 3],
    peeked: usize,
    names: BTreeMap<String, VariableId>,
    /// Variables declared so far and still visible.
    scope: Vec<VariableId>,
    action_line: usize,
    range_depth: usize,
    nesting: usize,
    defined: BTreeMap<String, Arc<Template>>,
}

impl Parser<'_> {
    fn next(&mut self) -> Token {
        if self.peeked > 0 {
            self.peeked -= 1;
        } else {
            self.tokens[0] = self.lexer.next_token();
        }
        self.tokens.get(self.peeked).cloned().unwrap_or(END)
    }

    fn backup(&mut self) {
        self.peeked += 1;
    }

    /// Puts back a token that came before the newest one.
    fn backup2(&mut self, earlier: Token) {
        self.tokens[1] = earlier;
        self.peeked = 2;
    }

    fn backup3(&mut self, earliest: Token, earlier: Token) {
        self.tokens[1] = earlier;
        self.tokens[2] = earliest;
        self.peeked = 3;
    }

    fn peek(&mut self) -> Token {
        let token = self.next();
        self.backup();
        token
    }

    fn next_non_space(&mut self) -> Token {
        loop {
            let token = self.next();
            if token.kind != Kind::Space {
                return token;
            }
        }
    }

    fn peek_non_space(&mut self) -> Token {
        let token = self.next_non_space();
        self.backup();
        token
    }

    fn text(&self, token: &Token) -> &[u8] {
        self.source.text.get(token.span.clone()).unwrap_or_default()
    }

    fn string(&self, token: &Token) -> String {
        String::from_utf8_lossy(self.text(token)).into_owned()
    }

    fn fail<T>(&self, message: impl Into<String>) -> Parsed<T> {
        Err(ParseError { name: self.source.name.clone(), line: self.tokens[0].line, message: message.into() })
    }

    fn unexpected<T>(&self, token: &Token, context: &str) -> Parsed<T> {
        let shown = token.show(&self.source.text);
        if token.kind != Kind::Error {
            return self.fail(format!("unexpected {shown} in {context}"));
        }
        if self.action_line == 0 || self.action_line == token.line {
            return self.fail(shown);
        }
        let action = if shown.ends_with(" action") { "" } else { " in action" };
        self.fail(format!("{shown}{action} started at {}:{}", self.source.name, self.action_line))
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parsed<Token> {
        let token = self.next_non_space();
        if token.kind == kind { Ok(token) } else { self.unexpected(&token, context) }
    }

    fn nest(&mut self) -> Parsed<()> {
        if self.nesting >= MAX_NESTING {
            return self.fail("max expression depth exceeded");
        }
        self.nesting += 1;
        Ok(())
    }

    fn add(&mut self, name: String, root: List) -> Parsed<()> {
        let template = Arc::new(Template { name, source: Arc::clone(self.source), root });
        match self.defined.get(&template.name) {
            Some(old) if !old.is_blank() => {
                if !template.is_blank() {
                    let name = quote(template.name.as_bytes());
                    return self.fail(format!("template: multiple definition of template {name}"));
                }
            }
            _ => {
                self.defined.insert(template.name.clone(), template);
            }
        }
        Ok(())
    }

    fn top_level(&mut self) -> Parsed<List> {
        let mut nodes = Vec::new();
        while self.peek().kind != Kind::Eof {
            if self.peek().kind == Kind::LeftDelim {
                let delim = self.next();
                if self.next_non_space().kind == Kind::Define {
                    self.definition()?;
                    continue;
                }
                self.backup2(delim);
            }
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::Terminator(Terminator::End) => return self.fail("unexpected {{end}}"),
                Item::Terminator(Terminator::Else) => return self.fail("unexpected {{else}}"),
            }
        }
        Ok(List { nodes })
    }

    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let name = self.next_non_space();
        let name = self.template_name(&name, CONTEXT)?;
        self.expect(Kind::RightDelim, CONTEXT)?;
        let root = self.own_scope(CONTEXT)?;
        self.add(name, root)
    }

    /// The body of a `define` or `block`, which sees no variable but `$`.
    fn own_scope(&mut self, context: &str) -> Parsed<List> {
        let outer = (std::mem::replace(&mut self.scope, vec![0]), std::mem::take(&mut self.range_depth));
        self.nest()?;
        let (list, terminator) = self.item_list()?;
        self.nesting -= 1;
        (self.scope, self.range_depth) = outer;
        match terminator {
            Terminator::End => Ok(list),
            Terminator::Else => self.fail(format!("unexpected {{{{else}}}} in {context}")),
        }
    }

    fn item_list(&mut self) -> Parsed<(List, Terminator)> {
        let mut nodes = Vec::new();
        while self.peek_non_space().kind != Kind::Eof {
            match self.text_or_action()? {
                Item::Node(node) => nodes.push(node),
                Item::Terminator(terminator) => return Ok((List { nodes }, terminator)),
            }
        }
        self.fail("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        match token.kind {
            Kind::Text => Ok(Item::Node(Node::Text(token.span))),
            Kind::LeftDelim => {
                self.action_line = token.line;
                let item = self.action()?;
                self.action_line = 0;
                Ok(item)
            }
            _ => self.unexpected(&token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Item> {
        let token = self.next_non_space();
        let at = pos(&token);
        let node = match token.kind {
            Kind::Block => self.block()?,
            Kind::Break => Node::Break(self.loop_control(at, "{{break}}")?),
            Kind::Continue => Node::Continue(self.loop_control(at, "{{continue}}")?),
            Kind::Else => {
                // `else if` and `else with` are left for the caller to see.
                if !matches!(self.peek_non_space().kind, Kind::If | Kind::With) {
                    self.expect(Kind::RightDelim, "else")?;
                }
                return Ok(Item::Terminator(Terminator::Else));
            }
            Kind::End => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Item::Terminator(Terminator::End));
            }
            Kind::If => Node::If(self.control("if")?),
            Kind::Range => Node::Range(self.control("range")?),
            Kind::With => Node::With(self.control("with")?),
            Kind::Template => self.template()?,
            _ => {
                self.backup();
                let at = pos(&self.peek());
                Node::Action(Action { pos: at, pipe: self.pipeline("command", Kind::RightDelim)? })
            }
        };
        Ok(Item::Node(node))
    }

    fn loop_control(&mut self, at: Pos, shown: &str) -> Parsed<Pos> {
        let token = self.next_non_space();
        if token.kind != Kind::RightDelim {
            return self.unexpected(&token, shown);
        }
        if self.range_depth == 0 {
            return self.fail(format!("{shown} outside {{{{range}}}}"));
        }
        Ok(at)
    }

    fn control(&mut self, context: &'static str) -> Parsed<Branch> {
        let visible = self.scope.len();
        self.nest()?;
        let pipe = self.pipeline(context, Kind::RightDelim)?;
        let is_range = usize::from(context == "range");
        self.range_depth += is_range;
        let (list, terminator) = self.item_list()?;
        self.range_depth -= is_range;
        let otherwise = match terminator {
            Terminator::End => None,
            Terminator::Else => Some(self.otherwise(context)?),
        };
        self.nesting -= 1;
        self.scope.truncate(visible);
        Ok(Branch { pos: pipe.pos, pipe, list, otherwise })
    }

    /// What follows `{{else`: `if b}}` in a chain, or a list up to the end.
    fn otherwise(&mut self, context: &'static str) -> Parsed<List> {
        let next = self.peek().kind;
        if context == "if" && next == Kind::If {
            self.next();
            return Ok(List { nodes: vec![Node::If(self.control("if")?)] });
        }
        if context == "with" && next == Kind::With {
            self.next();
            return Ok(List { nodes: vec![Node::With(self.control("with")?)] });
        }
        match self.item_list()? {
            (list, Terminator::End) => Ok(list),
            (_, Terminator::Else) => self.fail("expected end; found {{else}}"),
        }
    }

    fn block(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "block clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Kind::RightDelim)?;
        let root = self.own_scope(CONTEXT)?;
        self.add(name.clone(), root)?;
        Ok(Node::Template(Invocation { pos: pos(&token), name, pipe: Some(pipe) }))
    }

    fn template(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "template clause";
        let token = self.next_non_space();
        let name = self.template_name(&token, CONTEXT)?;
        let pipe = if self.next_non_space().kind == Kind::RightDelim {
            None
        } else {
            self.backup();
            Some(self.pipeline(CONTEXT, Kind::RightDelim)?)
        };
        Ok(Node::Template(Invocation { pos: pos(&token), name, pipe }))
    }

    fn template_name(&mut self, token: &Token, context: &str) -> Parsed<String> {
        if !matches!(token.kind, Kind::String | Kind::RawString) {
            return self.unexpected(token, context);
        }
        match unquote(self.text(token)) {
            Some(name) => Ok(String::from_utf8_lossy(&name).into_owned()),
            None => self.fail("invalid syntax"),
        }
    }
}

/// A token's position. Sources are far smaller than 4 GiB, as limits on archives see to.
fn pos(token: &Token) -> Pos {
    Pos::try_from(token.span.start).unwrap_or(Pos::MAX)
}
