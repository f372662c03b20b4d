//! Names the shells that there are completion scripts for.

use clap::ValueEnum;

/// Which completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// For kubectl-emco in bash.
    Bash,
    /// For kubectl-emco in zsh.
    Zsh,
    /// For kubectl-emco in fish.
    Fish,
    /// For `kubectl emco` in any shell that kubectl completes in.
    Kubectl,
}
