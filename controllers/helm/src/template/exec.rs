//! Executes templates: text, or an error with its place.
//!
//! The order in which nodes are visited and the node an error names follow Go's executor, because charts and people
//! compare error texts.
mod builtin;
mod call;
mod error;
mod eval;
mod field;
mod lookup;
mod slot;
mod stack;
mod walk;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

use smallvec::SmallVec;

pub use builtin::clean;
pub use error::{ExecError, Place};
pub use lookup::{Found, Lookup, LookupRead};
use slot::Slot;
pub use stack::{STACK_BYTES, StackGuard};

use super::ast::{
    Chain, Command, Field, Identifier, Invocation, Operand, Pipe, Template, Variable, VariableId,
};
use super::set::{Scope, TemplateSet};
use crate::funcs::{Ctx, Shared};
use crate::limits::{LimitError, give};
use crate::value::Value;

/// What all templates of one render share.
pub struct Render<'r> {
    pub shared: &'r Shared,
    pub templates: &'r TemplateSet,
    pub lookup: Option<&'r dyn Lookup>,
    pub lookups: RefCell<BTreeSet<LookupRead>>,
    pub guard: StackGuard,
    /// How often each template is included at the moment, by name.
    including: RefCell<BTreeMap<String, u32>>,
    depth: Cell<usize>,
    /// Parsed texts of `tpl`, which charts pass again and again.
    parsed: RefCell<builtin::TextCache>,
}

/// Text that stands for nil in output, until Helm removes it.
pub const NO_VALUE: &[u8] = b"<no value>";

impl<'r> Render<'r> {
    pub fn new(
        shared: &'r Shared,
        templates: &'r TemplateSet,
        lookup: Option<&'r dyn Lookup>,
        guard: StackGuard,
    ) -> Self {
        Self {
            shared,
            templates,
            lookup,
            lookups: RefCell::default(),
            guard,
            including: RefCell::default(),
            depth: Cell::new(0),
            parsed: RefCell::default(),
        }
    }

    /// Renders a file of the set.
    pub fn file(&self, name: &str, data: &Value) -> Result<Vec<u8>, ExecError> {
        self.shared.start_file(name);
        let scope = Scope::root(self.templates);
        let Some(template) = scope.get(name) else {
            return Err(ExecError::plain(builtin::no_template(name)));
        };
        let mut out = Vec::new();
        self.execute(&scope, template, &Slot::of(data.clone()), &mut out)?;
        Ok(without_no_value(out))
    }

    /// Executes a template whose output becomes a text.
    fn text_of(&self, scope: &Scope<'_>, template: &Template, dot: &Slot) -> Result<Vec<u8>, ExecError> {
        let mut out = Vec::new();
        let result = self.shared.meter.nested(|| self.execute(scope, template, dot, &mut out));
        // The value that becomes of it counts itself.
        give(out.len());
        result.map(|()| out)
    }

    /// Executes a template on its own, with nothing but `$` declared.
    fn execute(
        &self,
        scope: &Scope<'_>,
        template: &Template,
        dot: &Slot,
        out: &mut Vec<u8>,
    ) -> Result<(), ExecError> {
        let depth = self.depth.get();
        let limit = self.shared.meter.limits().depth;
        let mut state = State {
            render: self,
            scope,
            template,
            vars: SmallVec::from_iter([(0, dot.clone())]),
            at: None,
            nil_interface: false,
        };
        if depth >= limit {
            return Err(state.limit(LimitError::Depth(limit)));
        }
        self.depth.set(depth + 1);
        let result = state.list(dot, &template.root, out);
        self.depth.set(depth);
        result.map(drop)
    }
}

/// Removes what Go prints for nil, as Helm does after the fact.
fn without_no_value(out: Vec<u8>) -> Vec<u8> {
    if memchr::memmem::find(&out, NO_VALUE).is_none() {
        return out;
    }
    let mut clean = Vec::with_capacity(out.len());
    let mut rest = out.as_slice();
    while let Some(found) = memchr::memmem::find(rest, NO_VALUE) {
        clean.extend_from_slice(rest.get(..found).unwrap_or_default());
        rest = rest.get(found + NO_VALUE.len()..).unwrap_or_default();
    }
    clean.extend_from_slice(rest);
    clean
}

/// The node being evaluated, which an error names.
#[derive(Clone, Copy)]
enum At<'a> {
    Operand(&'a Operand),
    Field(&'a Field),
    Variable(&'a Variable),
    Identifier(&'a Identifier),
    Chain(&'a Chain),
    Command(&'a Command),
    Pipe(&'a Pipe),
    Invocation(&'a Invocation),
}

/// The execution of one template.
struct State<'a> {
    render: &'a Render<'a>,
    scope: &'a Scope<'a>,
    template: &'a Template,
    /// Declared variables, innermost last.
    vars: SmallVec<[(VariableId, Slot); 8]>,
    at: Option<At<'a>>,
    /// The last argument was a nil that sits in an interface, which `len` alone tells from no value at all.
    nil_interface: bool,
}

impl<'a> State<'a> {
    fn context(&self, function: &'static str) -> Ctx<'a> {
        Ctx::new(self.render.shared, &self.template.name, function)
    }
}
