//! A version as templates see it: its parts and Go methods.
use std::any::Any;
use std::cmp::Ordering;

use super::Version;
use crate::funcs::{Ctx, FuncError, Param};
use crate::value::{Int, IntKind, Kind, Method, Object, Value};

/// The value `semver` gives.
#[derive(Clone, Debug)]
pub(crate) struct VersionObject {
    pub version: Version,
    /// `semver` gives a pointer, the methods that count up give a plain struct.
    pub pointer: bool,
}

const POINTER: &str = "*semver.Version";
const OTHER: Method = Method { params: &[Param::Object(POINTER)], variadic: None };
const TEXT: Method = Method { params: &[Param::String], variadic: None };

impl VersionObject {
    pub fn pointer(version: Version) -> Value {
        Value::object(Self { version, pointer: true })
    }

    /// A version derived from this one.
    fn next(&self, change: impl FnOnce(&mut Version)) -> Value {
        let mut version = self.version.clone();
        change(&mut version);
        let prefix = if self.version.original.starts_with('v') { "v" } else { "" };
        version.original = format!("{prefix}{version}");
        Value::object(Self { version, pointer: false })
    }
}

fn number(value: u64) -> Value {
    Value::Int(Int::unsigned(IntKind::Uint64, value))
}

impl Object for VersionObject {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn is_unexported(&self, name: &str) -> bool {
        matches!(name, "major" | "minor" | "patch" | "pre" | "metadata" | "original")
    }

    fn equals(&self, other: &dyn Object) -> Option<bool> {
        let other = other.as_any().downcast_ref::<Self>()?;
        (!self.pointer && !other.pointer).then(|| self.version == other.version)
    }

    fn type_name(&self) -> &'static str {
        if self.pointer { POINTER } else { "semver.Version" }
    }

    fn kind(&self) -> Kind {
        if self.pointer { Kind::Pointer } else { Kind::Struct }
    }

    fn method(&self, name: &str) -> Option<Method> {
        match name {
            "String" | "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "IncPatch" | "IncMinor"
            | "IncMajor" => Some(Method::GETTER),
            "SetPrerelease" | "SetMetadata" => Some(TEXT),
            "Original" if self.pointer => Some(Method::GETTER),
            "LessThan" | "LessThanEqual" | "GreaterThan" | "GreaterThanEqual" | "Equal" | "Compare"
                if self.pointer =>
            {
                Some(OTHER)
            }
            _ => None,
        }
    }

    fn call(&self, _ctx: &mut Ctx<'_>, name: &str, args: &[Value]) -> Result<Value, FuncError> {
        let version = &self.version;
        let text = || {
            args.first().and_then(Value::as_text).map(|text| text.lossy().into_owned()).unwrap_or_default()
        };
        Ok(match name {
            "String" => Value::from(version.to_string()),
            "Original" => Value::from(version.original.as_str()),
            "Major" => number(version.major),
            "Minor" => number(version.minor),
            "Patch" => number(version.patch),
            "Prerelease" => Value::from(version.pre.as_str()),
            "Metadata" => Value::from(version.metadata.as_str()),
            "IncPatch" => self.next(|version| {
                if version.pre.is_empty() {
                    version.patch = version.patch.wrapping_add(1);
                }
                version.pre.clear();
                version.metadata.clear();
            }),
            "IncMinor" => self.next(|version| {
                version.minor = version.minor.wrapping_add(1);
                version.patch = 0;
                version.pre.clear();
                version.metadata.clear();
            }),
            "IncMajor" => self.next(|version| {
                version.major = version.major.wrapping_add(1);
                (version.minor, version.patch) = (0, 0);
                version.pre.clear();
                version.metadata.clear();
            }),
            "SetPrerelease" | "SetMetadata" => {
                let (text, pre) = (text(), name == "SetPrerelease");
                let probe = if pre { format!("1-{text}") } else { format!("1+{text}") };
                if !text.is_empty() {
                    Version::parse(&probe).map_err(FuncError::new)?;
                }
                self.next(|version| if pre { version.pre = text } else { version.metadata = text })
            }
            _ => {
                let other = args.first().and_then(Value::as_object);
                let other = other.and_then(|object| object.as_any().downcast_ref::<Self>());
                let Some(other) = other else { return Err(FuncError::new("nil version")) };
                let order = version.compare(&other.version);
                match name {
                    "LessThan" => (order == Ordering::Less).into(),
                    "LessThanEqual" => (order != Ordering::Greater).into(),
                    "GreaterThan" => (order == Ordering::Greater).into(),
                    "GreaterThanEqual" => (order != Ordering::Less).into(),
                    "Equal" => (order == Ordering::Equal).into(),
                    _ => Value::int(order as i64),
                }
            }
        })
    }

    fn display(&self) -> Option<Vec<u8>> {
        Some(self.version.to_string().into_bytes())
    }

    fn plain(&self) -> Value {
        Value::from(self.version.to_string())
    }
}
