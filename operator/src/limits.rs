//! Raises the kernel's limits of the process as far as it is allowed.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Each cluster needs a connection or more: the usual soft limit of 1,024 files would end at some hundred clusters.
pub fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current == maximum {
        return;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }) {
        Ok(()) => tracing::debug!(?current, ?maximum, "raised the limit of open files"),
        Err(error) => tracing::warn!(%error, ?current, "the limit of open files cannot be raised"),
    }
}
