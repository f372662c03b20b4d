//! Finds template functions by name, with their Go signatures.
//!
//! The executor checks and converts arguments against the signature as Go does (`wrong type for value; expected
//! string; got float64`), so a function body can rely on the types its parameters name.
mod args;
mod base;
mod builtin;
mod case;
mod cast;
mod crypto;
mod date;
mod decimal;
mod dicts;
mod encode;
mod equal;
mod lists;
mod math;
mod merge;
#[cfg(test)]
mod oracle;
mod path;
mod random;
mod regex;
mod semver;
#[cfg(test)]
mod stable;
mod text;
mod types;
mod url;
mod words;

pub(crate) use cast::parse_float;
pub(crate) use url::Url;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::limits::{LimitError, Meter, NODE_BYTES, take};
use crate::value::{Map, Value, WeakMap};

/// The Go type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Param {
    /// `interface {}`: nil arrives as `Value::Nil`.
    Any,
    /// `reflect.Value`: as `Any`, but the error for a wrong use comes from the function.
    Reflect,
    /// `string`: arrives as `Value::Text`.
    String,
    /// `bool`
    Bool,
    /// `int`
    Int,
    /// `int64`
    Int64,
    /// `uint32`: arrives as an `Int` of that kind.
    Uint32,
    /// `float64`: untyped constants such as `1` arrive as `Value::Float`.
    Float64,
    /// `map[string]interface {}`: `Values` and `Any` maps arrive unchanged, nil as a nil map.
    Map,
    /// `[]interface {}`
    List,
    /// `[]string`
    Strings,
    /// An object type by its Go name, for example `time.Time`.
    Object(&'static str),
}

/// A function body. Results use Go's result type (`Value::int` for `int`, `Value::int64` for `int64` and so on).
pub type Func = fn(&mut Ctx<'_>, &[Value]) -> Result<Value, FuncError>;

/// A function with its signature.
#[derive(Clone, Copy, Debug)]
pub struct FuncDef {
    pub name: &'static str,
    pub params: &'static [Param],
    /// The type of further arguments, for variadic functions.
    pub variadic: Option<Param>,
    pub call: Func,
}

/// Why a function failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FuncError {
    /// The error text Go's function returns (the executor adds `error calling NAME: `).
    #[error("{0}")]
    Failed(String),
    #[error(transparent)]
    Limit(#[from] LimitError),
}

impl FuncError {
    pub fn new(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}

/// Where in a render a random function is called. Two renders of the same chart and values have the same sites.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallSite {
    /// The file being rendered, for example `shop/templates/secret.yaml`.
    pub file: String,
    /// The template whose text calls the function: the file itself or a `define`d name.
    pub template: String,
    pub function: &'static str,
    /// How often this template called this function before while this file was rendered.
    pub nth: u64,
}

/// What functions of one render share.
#[derive(Debug)]
pub struct Shared {
    pub meter: Meter,
    /// All random functions draw from this when it is there; otherwise from the system.
    pub seed: Option<[u8; 32]>,
    /// The time `now` returns, seconds and nanoseconds since 1970 UTC; the same over one render.
    pub now: (i64, u32),
    pub warnings: RefCell<Vec<String>>,
    /// The file being rendered.
    pub file: RefCell<String>,
    calls: RefCell<BTreeMap<(String, &'static str), u64>>,
    /// Whether a random function was called.
    pub drawn: Cell<bool>,
    changed: RefCell<Vec<WeakMap>>,
}

impl Shared {
    pub fn new(meter: Meter, seed: Option<[u8; 32]>, now: (i64, u32)) -> Self {
        Self {
            meter,
            seed,
            now,
            warnings: RefCell::default(),
            file: RefCell::default(),
            calls: RefCell::default(),
            drawn: Cell::default(),
            changed: RefCell::default(),
        }
    }

    /// Starts the rendering of a file: call sites are counted anew.
    pub fn start_file(&self, file: &str) {
        file.clone_into(&mut self.file.borrow_mut());
        self.calls.borrow_mut().clear();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // A map that was put into itself would otherwise live for ever.
        for map in self.changed.borrow().iter() {
            map.clear();
        }
    }
}

/// What one call of a function may use.
#[derive(Debug)]
pub struct Ctx<'a> {
    pub shared: &'a Shared,
    /// The template whose text makes the call.
    pub template: &'a str,
    /// The function's name as the template wrote it.
    pub function: &'static str,
    /// Bytes that this call asked for so far.
    asked: Cell<usize>,
}

impl<'a> Ctx<'a> {
    pub fn new(shared: &'a Shared, template: &'a str, function: &'static str) -> Self {
        Self { shared, template, function, asked: Cell::new(0) }
    }

    /// Asks for bytes the function is about to make, beside those that it asked for before. Call it before large or input-sized
    /// allocations.
    pub fn charge(&self, bytes: usize) -> Result<(), FuncError> {
        let asked = self.asked.get().saturating_add(bytes);
        self.asked.set(asked);
        Ok(self.shared.meter.charge_more(bytes, asked)?)
    }

    /// Says that a map reachable from elsewhere was changed in place (`set`, `merge` and such).
    pub fn changed(&self, map: &Map) {
        let mut changed = self.shared.changed.borrow_mut();
        if let Some(weak) = map.downgrade()
            && !changed.last().is_some_and(|last| last.is_same(&weak))
        {
            // The map that it leads to stays in memory, empty.
            take(NODE_BYTES);
            changed.push(weak);
        }
    }

    pub fn warn(&self, message: impl Into<String>) {
        let message = message.into();
        take(message.len() + NODE_BYTES);
        self.shared.warnings.borrow_mut().push(message);
    }

    /// The place of this call, counted. Only random functions ask for it, once per call.
    pub fn call_site(&self) -> CallSite {
        self.shared.drawn.set(true);
        let mut calls = self.shared.calls.borrow_mut();
        let nth = calls.entry((self.template.to_owned(), self.function)).or_insert(0);
        let site = CallSite {
            file: self.shared.file.borrow().clone(),
            template: self.template.to_owned(),
            function: self.function,
            nth: *nth,
        };
        *nth += 1;
        site
    }
}

/// The function of a name. Not here, because the executor itself is part of them: `include`, `tpl`, `required`,
/// `lookup`, `fail`, `and`, `or`, `call`.
pub fn find(name: &str) -> Option<&'static FuncDef> {
    static BY_NAME: LazyLock<BTreeMap<&'static str, &'static FuncDef>> = LazyLock::new(|| {
        MODULES.iter().flat_map(|functions| functions.iter()).map(|def| (def.name, def)).collect()
    });
    BY_NAME.get(name).copied()
}

/// All functions, by subject.
const MODULES: &[&[FuncDef]] = &[
    builtin::FUNCS,
    case::FUNCS,
    crypto::FUNCS,
    crypto::CERTIFICATE_FUNCS,
    date::FUNCS,
    dicts::FUNCS,
    encode::FUNCS,
    lists::FUNCS,
    math::FUNCS,
    path::FUNCS,
    random::FUNCS,
    regex::FUNCS,
    semver::FUNCS,
    text::FUNCS,
    types::FUNCS,
    url::FUNCS,
];
