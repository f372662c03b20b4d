//! Keeps the whole words of refusals that a row has no room for, so that Events say them.
//!
//! Kept by this process alone: what is lost is heard again with the next try, and Events say what the row says until then.

use std::collections::BTreeMap;

use emco_crds::sync_shard::status::RowError;
use emco_engine::conditions::shorten;
use emco_engine::rollup;
use emco_engine::shard::LONGEST_ERROR;
use parking_lot::Mutex;

/// Rows whose words are kept, of all owners together.
const MOST: usize = 1024;

/// The whole words of rows' errors, by owner hash and cluster.
#[derive(Default)]
pub struct Refusals(Mutex<BTreeMap<(String, String), Refusal>>);

/// One error.
#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    /// The object, as the row names it.
    resource: Option<String>,
    /// As the row says it.
    short: String,
    whole: String,
    /// The row has it now, and not only had it before.
    stands: bool,
}

impl Refusal {
    fn is_of(&self, error: &RowError) -> bool {
        self.resource == error.resource && self.short == error.message
    }
}

impl Refusals {
    /// Notes the error that a row has now, and its whole words where they are longer. Without them, what is known of the same error stays,
    /// also where the row has none for a moment: who tries again only later does not hear the words again.
    pub fn note(&self, owner: &str, cluster: &str, error: Option<&RowError>, whole: Option<&str>) {
        let mut all = self.0.lock();
        if whole.is_none() && all.is_empty() {
            return;
        }
        let key = (owner.to_owned(), cluster.to_owned());
        let Some(error) = error else {
            if let Some(known) = all.get_mut(&key) {
                known.stands = false;
            }
            return;
        };
        if let Some(known) = all.get_mut(&key).filter(|known| whole.is_none() && known.is_of(error)) {
            known.stands = true;
            return;
        }
        all.remove(&key);
        let Some(whole) = whole.filter(|whole| shorten(whole, LONGEST_ERROR) == error.message) else {
            return;
        };
        if all.len() >= MOST {
            all.retain(|_, known| known.stands);
        }
        if all.len() < MOST {
            let (resource, short) = (error.resource.clone(), error.message.clone());
            all.insert(key, Refusal { resource, short, whole: whole.to_owned(), stands: true });
        }
    }

    /// Forgets a row that is not worked on any more.
    pub fn forget(&self, owner: &str, cluster: &str) {
        self.0.lock().remove(&(owner.to_owned(), cluster.to_owned()));
    }

    /// A text about an owner, with the whole words in the place of those that one of its rows has.
    pub fn complete(&self, owner: &str, text: &str) -> String {
        let all = self.0.lock();
        let of = all.range((owner.to_owned(), String::new())..).take_while(|((of, _), _)| of == owner);
        for ((_, cluster), Refusal { resource, short, whole, .. }) in of {
            let short = rollup::failing_message(resource.as_deref(), short);
            if text.contains(cluster.as_str()) && text.contains(&short) {
                return text.replacen(&short, &rollup::said_of_object(resource.as_deref(), whole), 1);
            }
        }
        text.to_owned()
    }

    /// True where nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(message: &str) -> RowError {
        let resource = Some("apps/Deployment/shop/web".to_owned());
        RowError { resource, message: shorten(message, LONGEST_ERROR), ..RowError::default() }
    }

    fn words(middle: &str) -> String {
        format!("{}{middle}{}", "a".repeat(200), "z".repeat(200))
    }

    fn said(cluster: &str, words: &str) -> String {
        let failing = rollup::failing_message(Some("apps/Deployment/shop/web"), &error(words).message);
        format!("0 of 2 clusters ready; {cluster} (web): Forbidden: {failing}")
    }

    #[test]
    fn a_text_gets_the_whole_words_of_its_own_cluster_and_owner() {
        let refusals = Refusals::default();
        let (one, two) = (words("one"), words("two"));
        assert_eq!(error(&one).message, error(&two).message, "rows say the same of both");
        refusals.note("till", "acme/a", Some(&error(&one)), Some(&one));
        refusals.note("till", "acme/b", Some(&error(&two)), Some(&two));
        let whole = |words: &str| format!("Forbidden: apps/Deployment/shop/web: {words}");
        assert!(refusals.complete("till", &said("acme/a", &one)).ends_with(&whole(&one)));
        assert!(refusals.complete("till", &said("acme/b", &two)).ends_with(&whole(&two)));
        let of_others = said("acme/a", &one);
        assert_eq!(refusals.complete("tils", &of_others), of_others);
        assert_eq!(refusals.complete("till", "all is well"), "all is well");
    }

    #[test]
    fn words_stay_with_their_error_and_go_with_it() {
        let refusals = Refusals::default();
        let first = words("first");
        refusals.note("till", "acme/a", Some(&error(&first)), Some(&first));
        refusals.note("till", "acme/a", Some(&error(&first)), None);
        assert!(!refusals.is_empty(), "a try that waits says the same");
        refusals.note("till", "acme/a", None, None);
        refusals.note("till", "acme/a", Some(&error(&first)), None);
        assert!(
            refusals.complete("till", &said("acme/a", &first)).ends_with(&first),
            "it was away for a pass"
        );
        refusals.note("till", "acme/a", Some(&error("another")), None);
        assert!(refusals.is_empty());
        refusals.note("till", "acme/a", Some(&error("another")), Some(&first));
        assert!(refusals.is_empty(), "words of something else");
        refusals.note("till", "acme/a", Some(&error(&first)), Some(&first));
        refusals.forget("till", "acme/a");
        assert!(refusals.is_empty());
    }

    #[test]
    fn a_fleet_that_refuses_everywhere_fills_no_memory() {
        let refusals = Refusals::default();
        let words = words("middle");
        for cluster in 0..5000 {
            refusals.note("till", &format!("acme/{cluster}"), Some(&error(&words)), Some(&words));
        }
        assert_eq!(refusals.0.lock().len(), MOST);
        (0..MOST).for_each(|cluster| refusals.note("till", &format!("acme/{cluster}"), None, None));
        refusals.note("till", "acme/new", Some(&error(&words)), Some(&words));
        assert!(refusals.0.lock().len() < MOST, "those that are over make room");
        assert!(refusals.complete("till", &said("acme/new", &words)).ends_with(&words));
    }
}
