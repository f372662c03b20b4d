//! Keeps with a value what Go knows of its static type: whether it sits in an interface.
use crate::value::Value;

/// How Go's reflection would hold the value. Nil differs: a field of an absent value is absent again, a field of a nil
/// interface is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// No value at all.
    Absent,
    /// An `interface {}`, perhaps nil: what maps and lists of any type hold.
    Interface,
    /// A value of its own type.
    Concrete,
}

#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub value: Value,
    pub form: Form,
}

impl Slot {
    pub const ABSENT: Self = Self { value: Value::Nil, form: Form::Absent };

    /// A value taken out of its interface; nil becomes absent.
    pub fn of(value: Value) -> Self {
        let form = if matches!(value, Value::Nil) { Form::Absent } else { Form::Concrete };
        Self { value, form }
    }

    /// An item of a map or list of `interface {}`.
    pub fn interface(value: Value) -> Self {
        Self { value, form: Form::Interface }
    }

    /// A value whose type is known; an untyped nil can only be an interface.
    pub fn typed(value: Value) -> Self {
        let form = if matches!(value, Value::Nil) { Form::Interface } else { Form::Concrete };
        Self { value, form }
    }

    /// The static type's name.
    pub fn type_name(&self) -> &'static str {
        match self.form {
            Form::Interface => "interface {}",
            Form::Absent | Form::Concrete => self.value.type_name(),
        }
    }

    /// The value as the result of a pipeline: out of its interface.
    pub fn stripped(self) -> Self {
        if self.form == Form::Interface { Self::of(self.value) } else { self }
    }
}
