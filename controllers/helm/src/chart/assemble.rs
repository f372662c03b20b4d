//! Makes a chart with its dependencies of its files.
use std::collections::BTreeMap;

use super::archive::{Budget, unpack};
use super::decode::{exact_mapping, mapping};
use super::{Chart, File, LoadError, Metadata};

pub(super) fn chart(files: Vec<File>, budget: &mut Budget) -> Result<Chart, LoadError> {
    budget.enter()?;
    let mut metadata = None;
    for file in files.iter().filter(|file| file.name == "Chart.yaml") {
        let metadata = metadata.get_or_insert_with(Metadata::default);
        metadata.read(&exact_mapping(&file.data, "Chart.yaml")?, "Chart.yaml")?;
        if metadata.api_version.is_empty() {
            "v1".clone_into(&mut metadata.api_version);
        }
    }
    let mut chart = Chart {
        id: 0,
        metadata: Metadata::default(),
        values: None,
        schema: None,
        templates: Vec::new(),
        files: Vec::new(),
        dependencies: Vec::new(),
        warnings: Vec::new(),
    };
    let mut subcharts: BTreeMap<String, Vec<File>> = BTreeMap::new();
    for file in files {
        let name = file.name.as_str();
        match name {
            "Chart.yaml" => {}
            // Locks matter to tools that fetch dependencies; their syntax is checked all the same.
            "Chart.lock" => drop(mapping(&file.data, name)?),
            "values.yaml" => chart.values = Some(mapping(&file.data, name)?),
            "values.schema.json" => chart.schema = Some(file.data),
            "requirements.yaml" => {
                let metadata = metadata.get_or_insert_with(Metadata::default);
                metadata.read(&exact_mapping(&file.data, name)?, name)?;
                old_style(&mut chart, metadata, file, "Dependencies are handled in Chart.yaml");
            }
            "requirements.lock" => {
                mapping(&file.data, name)?;
                let metadata = metadata.get_or_insert_with(Metadata::default);
                old_style(&mut chart, metadata, file, "Dependency locking is handled in Chart.lock");
            }
            _ if name.starts_with("templates/") => chart.templates.push(file),
            _ => match name.strip_prefix("charts/") {
                Some(_) if has_extension(name, "prov") => chart.files.push(file),
                Some(inner) => {
                    let subchart = inner.split('/').next().unwrap_or_default().to_owned();
                    let file = File { name: inner.to_owned(), data: file.data };
                    subcharts.entry(subchart).or_default().push(file);
                }
                None => chart.files.push(file),
            },
        }
    }
    chart.metadata = metadata.ok_or_else(|| LoadError::invalid("Chart.yaml file is missing"))?;
    chart.metadata.validate()?;
    for (name, files) in subcharts {
        if name.starts_with(['_', '.']) {
            continue;
        }
        let subchart = dependency(&name, files, budget).map_err(|error| wrap(error, &name, &chart))?;
        chart.dependencies.push(subchart);
    }
    budget.leave();
    Ok(chart)
}

/// Keeps a file of Helm 2 charts, or warns when the chart is newer.
fn old_style(chart: &mut Chart, metadata: &Metadata, file: File, remark: &str) {
    if metadata.api_version == "v1" {
        chart.files.push(file);
    } else {
        chart.warnings.push(format!("{}: {remark} since apiVersion \"v2\"", file.name));
    }
}

fn dependency(name: &str, files: Vec<File>, budget: &mut Budget) -> Result<Chart, LoadError> {
    if has_extension(name, "tgz") {
        let archive = files.into_iter().next().filter(|file| file.name == name);
        let archive = archive.ok_or_else(|| LoadError::Invalid(format!("{name} is not a file")))?;
        let files = unpack(&archive.data, budget)?;
        return chart(files, budget);
    }
    let inner = |file: File| {
        let (_, inner) = file.name.split_once('/')?;
        Some(File { name: inner.to_owned(), data: file.data })
    };
    chart(files.into_iter().filter_map(inner).collect(), budget)
}

fn wrap(error: LoadError, subchart: &str, chart: &Chart) -> LoadError {
    let place = format!("error unpacking subchart {subchart} in {}", chart.name());
    match error {
        LoadError::Invalid(message) => LoadError::Invalid(format!("{place}: {message}")),
        LoadError::Limit(message) => LoadError::Limit(format!("{message} ({place})")),
        io @ LoadError::Io { .. } => io,
    }
}

/// Whether the last part of a path has an extension, as Go's `filepath.Ext` finds it.
pub(super) fn has_extension(name: &str, wanted: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    base.rsplit_once('.').is_some_and(|(_, extension)| extension == wanted)
}
