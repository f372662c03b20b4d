//! Finds what an identifier in a template can call: a library function, or one of the engine's own.
use crate::funcs::{self, FuncDef, Param};

/// A callable, resolved when the template is parsed.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    Library(&'static FuncDef),
    /// Evaluates only as many arguments as it needs.
    And,
    Or,
    Call,
    Include,
    Tpl,
    Required,
    Fail,
    Lookup,
}

/// Parameter types and the type of further arguments.
pub type Signature = (&'static [Param], Option<Param>);

impl Function {
    pub fn find(name: &str) -> Option<Self> {
        Some(match name {
            "and" => Self::And,
            "or" => Self::Or,
            "call" => Self::Call,
            "include" => Self::Include,
            "tpl" => Self::Tpl,
            "required" => Self::Required,
            "fail" => Self::Fail,
            "lookup" => Self::Lookup,
            _ => Self::Library(funcs::find(name)?),
        })
    }

    pub fn signature(self) -> Signature {
        match self {
            Self::Library(def) => (def.params, def.variadic),
            Self::And | Self::Or | Self::Call => (&[Param::Reflect], Some(Param::Reflect)),
            Self::Include | Self::Tpl | Self::Required => (&[Param::String, Param::Any], None),
            Self::Fail => (&[Param::String], None),
            Self::Lookup => (&[Param::String, Param::String, Param::String, Param::String], None),
        }
    }
}
