//! What a watch shows of one object.

/// One object that came, changed or went.
pub struct Change<'a, K> {
    /// Its last known state.
    pub object: &'a K,
    /// It is no more.
    pub gone: bool,
}
