//! Says which namespaces Projects and ClusterProviders own, gives the operator its rights there, and reads which clusters they register.

pub mod facts;
pub mod namespace_access;
pub mod owned_namespace;
