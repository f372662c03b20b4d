//! Collects the names that a chart's templates can ask values for, whether a render comes to them or not.
use std::collections::BTreeSet;

use serde_json::{Map as JsonMap, Value as Json};

use crate::chart::{Chart, File};
use crate::schema;
use crate::template::ast::{Branch, Command, List, Node, Operand, Pipe};
use crate::template::parse;

/// Functions that read all of a table.
const WHOLE: [&str; 24] = [
    "deepCopy",
    "keys",
    "len",
    "merge",
    "mergeOverwrite",
    "mustDeepCopy",
    "mustMerge",
    "mustMergeOverwrite",
    "mustToJson",
    "mustToPrettyJson",
    "mustToRawJson",
    "omit",
    "pick",
    "print",
    "printf",
    "println",
    "toJson",
    "toPrettyJson",
    "toRawJson",
    "toString",
    "toToml",
    "toYaml",
    "tpl",
    "values",
];
/// Objects beside `.Values`, whose fields are no values.
const BESIDE: [&str; 7] =
    ["Release", "Chart", "Capabilities", "Files", "Template", "APIVersions", "KubeVersion"];
const VALUES: &str = "Values";
/// Names of all templates together; a chart that has more is taken to name everything.
const MOST: usize = 200_000;

/// Names that templates give.
#[derive(Debug, Default)]
pub(super) struct Names {
    /// What follows `.Values`.
    pub chains: BTreeSet<Vec<String>>,
    /// Those of them of which everything below is read.
    whole: BTreeSet<Vec<String>>,
    /// Names of which only a render shows the table that they are looked up in, and words of literals.
    loose: BTreeSet<String>,
    /// Those of them that end a chain.
    loose_ends: BTreeSet<String>,
    /// Those of them of which everything below is read.
    loose_whole: BTreeSet<String>,
}

/// The names of a chart and its dependencies.
#[derive(Debug, Default)]
pub(super) struct AllNames {
    /// By the number of the chart.
    own: Vec<Names>,
    /// Those of partials, which any chart of the tree may use.
    shared: Names,
}

impl AllNames {
    pub fn of(chart: &Chart) -> Self {
        let mut all = Self::default();
        all.add(chart);
        all
    }

    /// The names that templates of one chart may use.
    pub fn of_chart(&self, id: usize) -> impl Iterator<Item = &Names> {
        self.own.get(id).into_iter().chain([&self.shared])
    }

    fn add(&mut self, chart: &Chart) {
        let mut own = Names::default();
        own.metadata(chart);
        chart.values.iter().for_each(|values| own.texts(values));
        if let Some(schema) = chart.schema.as_ref().and_then(|data| schema::read(data).ok()) {
            own.properties(&schema);
        }
        for file in &chart.templates {
            let is_partial = file.name.rsplit('/').next().unwrap_or_default().starts_with('_');
            let names = if is_partial || chart.is_library() { &mut self.shared } else { &mut own };
            names.template(file);
        }
        for file in &chart.files {
            // It may be printed with `tpl`.
            if let Ok(text) = std::str::from_utf8(&file.data) {
                own.text(text);
            }
        }
        if self.own.len() <= chart.id {
            self.own.resize_with(chart.id + 1, Names::default);
        }
        if let Some(slot) = self.own.get_mut(chart.id) {
            *slot = own;
        }
        chart.dependencies.iter().for_each(|child| self.add(child));
    }
}

impl Names {
    /// Whether a template may read the value at `path`, or everything above it; `untouched` says of a number of its parts that
    /// the render read nothing below them, so that the template that does was perhaps not executed.
    pub fn may_read(&self, path: &[String], untouched: impl Fn(usize) -> bool) -> bool {
        let Some(last) = path.last() else { return true };
        if self.is_full() || self.loose.contains(last) {
            return true;
        }
        if self.chains.range(path.to_vec()..).next().is_some_and(|chain| chain.starts_with(path)) {
            return true;
        }
        (1..path.len()).any(|length| {
            let (Some(above), Some(name)) = (path.get(..length), path.get(length - 1)) else { return false };
            self.whole.contains(above)
                || self.loose_whole.contains(name)
                || untouched(length) && (self.chains.contains(above) || self.loose_ends.contains(name))
        })
    }

    /// The names that are asked for in the table at `path`.
    pub fn within<'n>(&'n self, path: &'n [String]) -> impl Iterator<Item = &'n String> {
        let from = self.chains.range(path.to_vec()..);
        from.take_while(move |chain| chain.starts_with(path)).filter_map(|chain| chain.get(path.len()))
    }

    fn is_full(&self) -> bool {
        self.chains.len() + self.loose.len() >= MOST
    }

    /// Conditions, tags and imports of dependencies.
    fn metadata(&mut self, chart: &Chart) {
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        for dependency in &chart.metadata.dependencies {
            let conditions = dependency.condition.trim().split(',').filter(|text| !text.is_empty());
            self.chains.extend(conditions.map(path));
            self.chains.extend(dependency.tags.iter().map(|tag| vec!["tags".to_owned(), tag.clone()]));
            let name = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
            for (child, parent) in dependency.import_values.iter().map(crate::chart::ImportValue::paths) {
                self.whole.insert(path(&format!("{name}.{child}")));
                self.whole.insert(path(&parent));
            }
        }
    }

    /// Names of properties of a schema.
    fn properties(&mut self, schema: &Json) {
        match schema {
            Json::Object(map) => {
                for (key, value) in map {
                    if let ("properties", Json::Object(properties)) = (key.as_str(), value) {
                        self.loose.extend(properties.keys().cloned());
                    }
                    self.properties(value);
                }
            }
            Json::Array(items) => items.iter().for_each(|item| self.properties(item)),
            _ => {}
        }
    }

    /// What texts among values name, which may be printed with `tpl`.
    pub fn texts(&mut self, values: &JsonMap<String, Json>) {
        fn each(names: &mut Names, value: &Json) {
            match value {
                Json::String(text) => names.text(text),
                Json::Array(items) => items.iter().for_each(|item| each(names, item)),
                Json::Object(map) => names.texts(map),
                _ => {}
            }
        }
        values.values().for_each(|value| each(self, value));
    }

    fn text(&mut self, text: &str) {
        if !text.contains("{{") {
            return;
        }
        for (_, after) in text.match_indices(".Values.").map(|(at, found)| text.split_at(at + found.len())) {
            let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
            let end = after.find(|c| !is_part(c)).unwrap_or(after.len());
            let chain = after.split_at(end).0.trim_end_matches('.');
            if !chain.is_empty() && !self.is_full() {
                self.chains.insert(chain.split('.').map(str::to_owned).collect());
            }
        }
    }

    /// A file that cannot be parsed has no names: a render that comes to it fails.
    fn template(&mut self, file: &File) {
        for template in parse(&file.name, file.data.to_vec()).into_iter().flatten() {
            self.list(&template.root);
        }
    }

    fn list(&mut self, list: &List) {
        for node in &list.nodes {
            match node {
                Node::Text(_) | Node::Break(_) | Node::Continue(_) => {}
                Node::Action(action) => self.pipe(&action.pipe, false),
                Node::If(branch) | Node::With(branch) => self.branch(branch, false),
                Node::Range(branch) => self.branch(branch, true),
                Node::Template(invocation) => {
                    invocation.pipe.iter().for_each(|pipe| self.pipe(pipe, false));
                }
            }
        }
    }

    fn branch(&mut self, branch: &Branch, is_whole: bool) {
        self.pipe(&branch.pipe, is_whole);
        self.list(&branch.list);
        branch.otherwise.iter().for_each(|list| self.list(list));
    }

    fn pipe(&mut self, pipe: &Pipe, is_whole: bool) {
        // What comes later in a pipeline gets what came before.
        let mut is_whole = is_whole;
        for command in pipe.commands.iter().rev() {
            is_whole |= reads_all(command);
            self.operand(&command.first, is_whole);
            command.rest.iter().for_each(|operand| self.operand(operand, is_whole));
        }
    }

    fn operand(&mut self, operand: &Operand, is_whole: bool) {
        match operand {
            Operand::Field(field) => self.chain(&field.names, is_whole),
            Operand::Variable(variable) => self.chain(&variable.fields, is_whole),
            Operand::Chain(chain) => {
                self.operand(&chain.base, false);
                self.chain(&chain.names, is_whole);
            }
            Operand::Pipe(pipe) => self.pipe(pipe, is_whole),
            Operand::Text(literal) => self.words(&String::from_utf8_lossy(&literal.text)),
            Operand::Dot(_)
            | Operand::Nil(_)
            | Operand::Bool(..)
            | Operand::Number(_)
            | Operand::Identifier(_) => {}
        }
    }

    fn words(&mut self, text: &str) {
        let words = text.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-')));
        let words: Vec<String> = words.filter(|word| !word.is_empty()).map(str::to_owned).collect();
        if !self.is_full() {
            self.loose_ends.extend(words.iter().cloned());
            self.loose.extend(words);
        }
        self.text(text);
    }

    fn chain(&mut self, names: &[Box<str>], is_whole: bool) {
        if self.is_full() {
            return;
        }
        if let Some(at) = names.iter().position(|name| &**name == VALUES) {
            let chain: Vec<String> = names.iter().skip(at + 1).map(ToString::to_string).collect();
            if chain.is_empty() {
                return;
            }
            if is_whole {
                self.whole.insert(chain.clone());
            }
            self.chains.insert(chain);
        } else if !names.iter().any(|name| BESIDE.contains(&&**name)) {
            self.loose.extend(names.iter().map(ToString::to_string));
            if let Some(last) = names.last().map(ToString::to_string) {
                if is_whole {
                    self.loose_whole.insert(last.clone());
                }
                self.loose_ends.insert(last);
            }
        }
    }
}

fn reads_all(command: &Command) -> bool {
    matches!(&command.first, Operand::Identifier(identifier) if WHOLE.contains(&identifier.name.as_str()))
}
