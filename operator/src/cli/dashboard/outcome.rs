//! Keeps what came of the forms that were sent, so that the page that is shown next can say it, and going back sends nothing again.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Number of outcomes that are kept.
const KEPT: usize = 100;

/// Outcome of one form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// Namespace and name of the deployment.
    pub of: (String, String),
    pub done: bool,
    pub text: String,
}

/// The newest of them, by number.
#[derive(Default)]
pub struct Outcomes {
    all: Mutex<(u64, BTreeMap<u64, Said>)>,
}

impl Outcomes {
    /// Keeps one; its number.
    pub fn keep(&self, said: Said) -> u64 {
        let mut all = self.all.lock();
        let (last, kept) = &mut *all;
        *last += 1;
        kept.insert(*last, said);
        while kept.len() > KEPT {
            kept.pop_first();
        }
        *last
    }

    /// The outcome with a number, if it is of this deployment.
    pub fn get(&self, number: u64, of: &(String, String)) -> Option<Said> {
        self.all.lock().1.get(&number).filter(|said| said.of == *of).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_said_on_the_page_of_its_deployment_alone() {
        let outcomes = Outcomes::default();
        let of = ("shop".to_owned(), "till".to_owned());
        let said = Said { of: of.clone(), done: true, text: "approved".to_owned() };
        let number = outcomes.keep(said.clone());
        assert_eq!(outcomes.get(number, &of), Some(said.clone()));
        assert_eq!(outcomes.get(number, &("shop".to_owned(), "web".to_owned())), None);
        for _ in 0..KEPT {
            outcomes.keep(said.clone());
        }
        assert_eq!(outcomes.get(number, &of), None);
    }
}
