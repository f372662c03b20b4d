//! Bounds on what a Git server may send.

/// Bounds on what is taken of a repository.
#[derive(Clone, Debug)]
pub struct GitLimits {
    /// Bytes of one answer with objects.
    pub pack_bytes: usize,
    /// Objects of one answer.
    pub objects: u32,
    /// Bytes of one object that is used.
    pub object_bytes: usize,
    /// Bytes that may be unpacked of one answer.
    pub work_bytes: u64,
    /// Files and folders that are listed.
    pub entries: usize,
}

impl Default for GitLimits {
    fn default() -> Self {
        Self {
            pack_bytes: 64 << 20,
            objects: 500_000,
            object_bytes: 16 << 20,
            work_bytes: 2 << 30,
            entries: 20_000,
        }
    }
}
