//! Selects the part of a chart that some overrides turn on: its values and templates.
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map as JsonMap, Value as Json};

use super::RenderError;
use crate::chart::Metadata;
use crate::template::set::TemplateSet;
use crate::template::{self, ParseError};
use crate::values::{Layer, Node};

/// A chart of the selection, with the values imports left it.
#[derive(Debug)]
pub(super) struct Member {
    /// Which chart of the compiled tree this is.
    pub id: usize,
    pub name: String,
    pub path: String,
    pub metadata: Metadata,
    pub values: JsonMap<String, Json>,
    pub children: Vec<Self>,
}

impl Layer for Member {
    fn name(&self) -> &str {
        &self.name
    }

    fn defaults(&self) -> &JsonMap<String, Json> {
        &self.values
    }

    fn children(&self) -> &[Self] {
        &self.children
    }
}

/// A file to render.
#[derive(Debug)]
pub(super) struct TemplateFile {
    /// The name templates and messages know it by.
    pub path: String,
    /// The path of the member it belongs to.
    pub chart: String,
}

/// Everything about a selection that no override changes further.
#[derive(Debug)]
pub(super) struct Variant {
    pub root: Member,
    pub templates: TemplateSet,
    /// In the order they are rendered.
    pub files: Vec<TemplateFile>,
}

/// Parsed texts by path, shared by all variants.
pub(super) type ParsedFiles = BTreeMap<String, Arc<Parsed>>;
type Parsed = Result<Vec<Arc<template::ast::Template>>, ParseError>;

impl Variant {
    pub fn build(node: &Node<'_>, parsed: &mut ParsedFiles) -> Result<Self, RenderError> {
        let mut found = BTreeMap::new();
        collect(node, &mut found);
        // Later definitions win, so files further up in the tree come last.
        let mut paths: Vec<&String> = found.keys().collect();
        paths.sort_by(|a, b| depth(b).cmp(&depth(a)).then_with(|| b.cmp(a)));
        let mut templates = TemplateSet::default();
        let mut files = Vec::with_capacity(paths.len());
        for path in paths {
            let Some((text, chart)) = found.get(path) else { continue };
            let known =
                parsed.entry(path.clone()).or_insert_with(|| Arc::new(template::parse(path, text.to_vec())));
            match known.as_ref() {
                Ok(defined) => templates.add(defined.clone()),
                Err(error) => return Err(RenderError::parse(path, error)),
            }
            files.push(TemplateFile { path: path.clone(), chart: chart.clone() });
        }
        Ok(Self { root: member(node), templates, files })
    }
}

fn depth(path: &str) -> usize {
    path.bytes().filter(|byte| *byte == b'/').count()
}

/// The templates of a chart and its children, by path; of equal paths the parent's wins.
fn collect<'n>(node: &Node<'n>, found: &mut BTreeMap<String, (&'n [u8], String)>) {
    for child in &node.dependencies {
        collect(child, found);
    }
    for file in &node.chart.templates {
        let base = file.name.rsplit('/').next().unwrap_or_default();
        // A library has nothing to render itself.
        if !node.chart.is_library() || base.starts_with('_') {
            found.insert(format!("{}/{}", node.path, file.name), (&file.data, node.path.clone()));
        }
    }
}

fn member(node: &Node<'_>) -> Member {
    let mut metadata = node.chart.metadata.clone();
    metadata.name.clone_from(&node.name);
    metadata.dependencies = node.listed.iter().map(|listed| listed.borrow().dependency.clone()).collect();
    Member {
        id: node.chart.id,
        name: node.name.clone(),
        path: node.path.clone(),
        metadata,
        values: node.values.clone().into_owned(),
        children: node.dependencies.iter().map(member).collect(),
    }
}
