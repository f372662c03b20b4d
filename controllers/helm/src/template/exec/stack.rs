//! Ends a render with an error before its stack ends.
use crate::limits::LimitError;

/// The stack of a render's thread. Only touched pages take memory.
pub const STACK_BYTES: usize = 96 << 20;

/// Room left for functions, parsers and drops, which recurse over values of bounded depth.
const MARGIN: usize = 24 << 20;

/// Watches how far the stack has grown since the guard was made.
#[derive(Clone, Copy, Debug)]
pub struct StackGuard {
    base: usize,
    usable: usize,
}

impl StackGuard {
    /// To be made near the bottom of a stack of `STACK_BYTES`.
    pub fn here() -> Self {
        Self { base: address(), usable: STACK_BYTES - MARGIN }
    }

    /// Fails when the stack is nearly used up.
    pub fn check(&self) -> Result<(), LimitError> {
        let used = self.base.abs_diff(address());
        if used > self.usable { Err(LimitError::Stack) } else { Ok(()) }
    }
}

#[inline(never)]
fn address() -> usize {
    let local = 0u8;
    std::ptr::from_ref(std::hint::black_box(&local)).addr()
}
