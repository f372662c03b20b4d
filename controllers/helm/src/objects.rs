//! Makes the built-in objects of templates, with Go's types and methods.
mod capabilities;
mod chart;
mod files;
mod record;

pub(crate) use capabilities::CapabilitiesObject;
pub use capabilities::{Capabilities, DEFAULT_API_VERSIONS, KubeVersionError, Reads};
pub(crate) use chart::chart_object;
pub(crate) use files::FilesObject;
pub use files::{Bytes, file_contents};
pub use record::{Field, Record};
