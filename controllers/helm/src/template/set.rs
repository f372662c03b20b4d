//! Keeps parsed templates by name, and decides which one wins a name.
use std::collections::BTreeMap;
use std::sync::Arc;

use super::ast::Template;

/// All templates of a chart and its dependencies.
#[derive(Debug, Default)]
pub struct TemplateSet {
    templates: BTreeMap<String, Arc<Template>>,
}

impl TemplateSet {
    /// Adds what one text defined. Later definitions win, unless they are blank and replace something.
    pub fn add(&mut self, defined: Vec<Arc<Template>>) {
        for template in defined {
            if !(template.is_blank() && self.templates.contains_key(&template.name)) {
                self.templates.insert(template.name.clone(), template);
            }
        }
    }

    pub fn get(&self, name: &str) -> Option<&Arc<Template>> {
        self.templates.get(name)
    }
}

/// The templates visible at one point of execution: those of the chart, and those the texts of enclosing `tpl`
/// calls define for themselves.
#[derive(Debug)]
pub struct Scope<'a> {
    outer: Option<&'a Self>,
    own: &'a TemplateSet,
}

impl<'a> Scope<'a> {
    pub fn root(own: &'a TemplateSet) -> Self {
        Self { outer: None, own }
    }

    pub fn inner(outer: &'a Self, own: &'a TemplateSet) -> Self {
        Self { outer: Some(outer), own }
    }

    pub fn get(&self, name: &str) -> Option<&'a Arc<Template>> {
        let mut scope = self;
        let mut blank = None;
        loop {
            match scope.own.get(name) {
                // A blank definition hides none that was there before.
                Some(template) if template.is_blank() => blank = blank.or(Some(template)),
                Some(template) => return Some(template),
                None => {}
            }
            match scope.outer {
                Some(outer) => scope = outer,
                None => return blank,
            }
        }
    }
}
