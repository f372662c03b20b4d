//! Parses the flags of `helm template`.
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Renders Helm charts natively, as Helm 3.17 does.
#[derive(Parser)]
#[command(version, about)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Render a chart's templates and print the manifests
    // Of a flag that is given twice the last one counts, as in Helm.
    #[command(args_override_self = true)]
    Template(Box<Template>),
}

#[derive(Args)]
#[allow(clippy::struct_excessive_bools)] // Helm's flags
pub struct Template {
    /// The release name, which may be left out, and the chart: a folder or a packaged file
    #[arg(value_name = "[NAME] CHART", required = true, num_args = 1..=2)]
    pub names: Vec<String>,

    /// The namespace of the release
    #[arg(short, long, default_value = "default")]
    pub namespace: String,

    /// A YAML file of values, or - for standard input; later files win
    #[arg(short = 'f', long, value_delimiter = ',', value_name = "FILE")]
    pub values: Vec<String>,

    /// Set values: key1=val1,key2=val2
    #[arg(long, value_name = "ASSIGNMENTS")]
    pub set: Vec<String>,

    /// Set values that are strings whatever they look like
    #[arg(long, value_name = "ASSIGNMENTS")]
    pub set_string: Vec<String>,

    /// Set values in JSON: key=json
    #[arg(long, value_name = "ASSIGNMENTS")]
    pub set_json: Vec<String>,

    /// Set values to the texts of files: key1=path1,key2=path2
    #[arg(long, value_name = "ASSIGNMENTS")]
    pub set_file: Vec<String>,

    /// Set a value to the text as it stands: key=text
    #[arg(long, value_name = "ASSIGNMENT")]
    pub set_literal: Vec<String>,

    /// The Kubernetes version templates see
    #[arg(long, value_name = "VERSION")]
    pub kube_version: Option<String>,

    /// Further API versions templates see, beyond those Helm assumes
    #[arg(short, long, value_delimiter = ',', value_name = "VERSIONS")]
    pub api_versions: Vec<String>,

    /// Print the files of `crds` folders too
    #[arg(long)]
    pub include_crds: bool,

    /// Leave hooks out
    #[arg(long)]
    pub no_hooks: bool,

    /// Leave test hooks out
    #[arg(long)]
    pub skip_tests: bool,

    /// Render for an upgrade instead of an installation
    #[arg(long)]
    pub is_upgrade: bool,

    /// Leave values.schema.json files aside
    #[arg(long)]
    pub skip_schema_validation: bool,

    /// Print only what comes from these templates; shell patterns are allowed
    #[arg(short, long, value_name = "TEMPLATE")]
    pub show_only: Vec<String>,

    /// Write one file per template into this folder instead of printing
    #[arg(long, value_name = "FOLDER")]
    pub output_dir: Option<PathBuf>,

    /// Put the release name into the path of written files
    #[arg(long)]
    pub release_name: bool,

    /// Collect the notes of dependencies too
    #[arg(long)]
    pub render_subchart_notes: bool,

    /// Print the notes after the manifests
    #[arg(long)]
    pub notes: bool,

    /// Make random values the same in every render with this text
    #[arg(long, value_name = "TEXT")]
    pub seed: Option<String>,

    /// The time `now` returns, in seconds since 1970
    #[arg(long, value_name = "SECONDS")]
    pub now: Option<i64>,
}
