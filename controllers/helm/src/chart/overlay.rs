//! Puts files over those of a chart.
use super::archive::{Budget, file};
use super::decode::mapping;
use super::{Chart, File, LoadError};
use crate::limits::Limits;

impl Chart {
    /// The same chart with files added, or put in place of its own: paths relative to the chart, and texts. Files of
    /// dependencies are reached as `charts/NAME/...`. `Chart.yaml` and lists of dependencies stay as they are.
    pub fn with_files<'a>(
        &self,
        files: impl IntoIterator<Item = (&'a str, &'a [u8])>,
        limits: &Limits,
    ) -> Result<Self, LoadError> {
        let mut chart = self.clone();
        let mut budget = Budget::new(limits);
        for (path, data) in files {
            budget.take(path, data.len())?;
            chart.put(path, path, data)?;
        }
        Ok(chart)
    }

    fn put(&mut self, path: &str, whole: &str, data: &[u8]) -> Result<(), LoadError> {
        let new = file(path.to_owned(), data);
        match path {
            "Chart.yaml" | "Chart.lock" | "requirements.yaml" | "requirements.lock" => {
                return Err(LoadError::invalid(format!(
                    "{whole} cannot be replaced: it says what the chart is"
                )));
            }
            "values.yaml" => self.values = Some(mapping(&new.data, whole)?),
            "values.schema.json" => self.schema = Some(new.data),
            _ if path.starts_with("templates/") => replace(&mut self.templates, new),
            _ => match path.strip_prefix("charts/").and_then(|rest| rest.split_once('/')) {
                Some((name, rest)) => {
                    let known = self.dependencies.iter_mut().find(|child| child.metadata.name == name);
                    let unknown = || {
                        LoadError::invalid(format!(
                            "{whole} names {name}, which is no dependency of the chart"
                        ))
                    };
                    return known.ok_or_else(unknown)?.put(rest, whole, data);
                }
                None => replace(&mut self.files, new),
            },
        }
        Ok(())
    }
}

fn replace(files: &mut Vec<File>, new: File) {
    match files.iter_mut().find(|file| file.name == new.name) {
        Some(old) => *old = new,
        None => files.push(new),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(name: &str, text: &str) -> (String, Vec<u8>) {
        (name.to_owned(), text.as_bytes().to_vec())
    }

    fn chart() -> Chart {
        let files = vec![
            text("Chart.yaml", "{apiVersion: v2, name: web, version: 1.0.0}"),
            text("values.yaml", "a: 1"),
            text("templates/a.yaml", "old"),
            text("charts/db/Chart.yaml", "{apiVersion: v2, name: db, version: 1.0.0}"),
        ];
        Chart::from_files(files, &Limits::default()).unwrap()
    }

    fn with(path: &str, text: &str) -> Result<Chart, LoadError> {
        chart().with_files([(path, text.as_bytes())], &Limits::default())
    }

    #[test]
    fn files_are_replaced_and_added_where_they_belong() {
        let names = |files: &[File]| files.iter().map(|file| file.name.clone()).collect::<Vec<_>>();
        let replaced = with("templates/a.yaml", "new").unwrap();
        assert_eq!(names(&replaced.templates), ["templates/a.yaml"]);
        assert_eq!(replaced.templates[0].data.as_ref(), b"new");
        assert_eq!(
            names(&with("templates/b.yaml", "").unwrap().templates),
            ["templates/a.yaml", "templates/b.yaml"]
        );
        assert_eq!(names(&with("conf/x", "").unwrap().files), ["conf/x"]);
        assert_eq!(with("values.yaml", "b: 2").unwrap().values(), serde_json::json!({"b": 2}));
        let inner = with("charts/db/templates/c.yaml", "").unwrap();
        assert_eq!(names(&inner.dependencies[0].templates), ["templates/c.yaml"]);
    }

    #[test]
    fn what_the_chart_is_stays() {
        assert!(with("Chart.yaml", "").unwrap_err().to_string().contains("cannot be replaced"));
        assert!(with("charts/none/x", "").unwrap_err().to_string().contains("no dependency"));
        assert!(with("values.yaml", "[]").is_err());
    }
}
