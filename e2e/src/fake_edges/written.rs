//! Counts what was written to servers that only store it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Instant;

use axum::http::Method;
use emco_engine::text::counted;

/// Where the hub marks how far its store had come when it last worked there.
const MARK: &str = "/api/v1/namespaces/emco-system/configmaps/hub";

/// Requests that change something, refused ones too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// By what was done to what, such as `patch serviceaccounts`.
    objects: BTreeMap<String, usize>,
    /// The hub's marks: one a while after it began to work on a cluster, whatever it does there.
    pub marks: usize,
    /// The first and the last one, marks apart.
    pub times: Option<(Instant, Instant)>,
}

impl Written {
    pub(super) fn note(&mut self, method: &Method, path: &str, at: Instant) {
        if method == Method::PATCH && path == MARK {
            self.marks += 1;
            return;
        }
        // An object is made in its collection.
        let place = usize::from(method != Method::POST);
        let resource = path.rsplit('/').nth(place).unwrap_or_default();
        *self.objects.entry(format!("{} {resource}", method.as_str().to_lowercase())).or_default() += 1;
        let first = self.times.map_or(at, |(first, _)| first);
        self.times = Some((first, at));
    }

    /// Writes of objects, marks apart.
    pub fn of_objects(&self) -> usize {
        self.objects.values().sum()
    }

    /// All writes.
    pub fn all(&self) -> usize {
        self.of_objects() + self.marks
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts: Vec<String> =
            self.objects.iter().map(|(what, count)| format!("{count} {what}")).collect();
        if self.marks > 0 {
            texts.push(format!("{} of the hub", counted(self.marks, "mark")));
        }
        f.write_str(&if texts.is_empty() { "nothing".to_owned() } else { texts.join(", ") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_of_the_hub_are_counted_apart() {
        let mut written = Written::default();
        assert_eq!(written.to_string(), "nothing");
        let at = Instant::now();
        written.note(&Method::PATCH, "/api/v1/namespaces/shop/serviceaccounts/one", at);
        written.note(&Method::PATCH, "/api/v1/namespaces/shop/serviceaccounts/two", at);
        written.note(&Method::POST, "/api/v1/namespaces", at);
        written.note(&Method::PATCH, MARK, Instant::now());
        written.note(&Method::DELETE, MARK, at);
        assert_eq!((written.of_objects(), written.marks, written.all()), (4, 1, 5));
        assert_eq!(written.times, Some((at, at)));
        let text = "1 delete configmaps, 2 patch serviceaccounts, 1 post namespaces, 1 mark of the hub";
        assert_eq!(written.to_string(), text);
    }
}
