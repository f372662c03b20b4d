//! Says which namespaces a Project or ClusterProvider owns, gives the operator its rights there, and reads which clusters are registered.

pub mod facts;
pub mod namespace_access;
pub mod owned_namespace;
