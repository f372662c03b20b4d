//! What both programs are made of: the operator's command line and log, and all of `kubectl-emco`. The command lines are in a
//! library so that a test can hold the messages of the whole code base against them.

pub mod args;
pub mod cli;
pub mod telemetry;
pub mod version;
