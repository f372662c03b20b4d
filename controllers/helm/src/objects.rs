//! The built-in objects of templates: charts, files and clusters come in, values with Go's types and methods go out.
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
