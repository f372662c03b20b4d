//! Keeps Go's integers: a number with its type.
use std::cmp::Ordering;
use std::fmt;

/// Which of Go's integer types a number has. It matters to `kindOf`, `eq` and `printf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntKind {
    Int,
    Int8,
    Int16,
    Int32,
    Int64,
    Uint,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
}

impl IntKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Uint => "uint",
            Self::Uint8 => "uint8",
            Self::Uint16 => "uint16",
            Self::Uint32 => "uint32",
            Self::Uint64 => "uint64",
        }
    }

    pub fn is_signed(self) -> bool {
        matches!(self, Self::Int | Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64)
    }
}

/// A Go integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Int {
    kind: IntKind,
    /// The number's bits; signed kinds are stored in two's complement.
    bits: u64,
}

impl Int {
    pub fn signed(kind: IntKind, value: i64) -> Self {
        Self { kind, bits: value.cast_unsigned() }
    }

    pub fn unsigned(kind: IntKind, value: u64) -> Self {
        Self { kind, bits: value }
    }

    pub fn kind(self) -> IntKind {
        self.kind
    }

    pub fn is_zero(self) -> bool {
        self.bits == 0
    }

    /// The number as Go converts it to `int64`: large unsigned numbers wrap.
    pub fn wrapping_i64(self) -> i64 {
        self.bits.cast_signed()
    }

    /// The number as Go converts it to `uint64`: negative numbers wrap.
    pub fn wrapping_u64(self) -> u64 {
        self.bits
    }

    #[allow(clippy::cast_precision_loss)] // Go's conversion loses the same digits.
    pub fn as_f64(self) -> f64 {
        if self.kind.is_signed() { self.wrapping_i64() as f64 } else { self.bits as f64 }
    }

    /// The exact number.
    pub fn as_i128(self) -> i128 {
        if self.kind.is_signed() { i128::from(self.wrapping_i64()) } else { i128::from(self.bits) }
    }

    /// Orders two integers by their mathematical value, across types.
    pub fn compare(self, other: Self) -> Ordering {
        self.as_i128().cmp(&other.as_i128())
    }
}

impl fmt::Display for Int {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.as_i128())
    }
}
