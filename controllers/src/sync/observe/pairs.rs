//! Values by two texts, such as group and kind or namespace and name; asked by borrowed texts, as it is for every object in
//! every pass.

use std::collections::BTreeMap;

/// A map in the order of its first, then its second text.
#[derive(Debug)]
pub struct Pairs<V>(BTreeMap<String, BTreeMap<String, V>>);

impl<V> Default for Pairs<V> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<V> Pairs<V> {
    pub fn get(&self, one: &str, two: &str) -> Option<&V> {
        self.0.get(one)?.get(two)
    }

    /// All with this first text, by the second.
    pub fn of(&self, one: &str) -> Option<&BTreeMap<String, V>> {
        self.0.get(one)
    }

    pub fn get_mut(&mut self, one: &str, two: &str) -> Option<&mut V> {
        self.0.get_mut(one)?.get_mut(two)
    }

    pub fn insert(&mut self, one: String, two: String, value: V) {
        self.0.entry(one).or_default().insert(two, value);
    }

    /// The value there, or the usual one, which is then there.
    pub fn or_default(&mut self, one: &str, two: &str) -> &mut V
    where
        V: Default,
    {
        self.0.entry(one.to_owned()).or_default().entry(two.to_owned()).or_default()
    }

    pub fn remove(&mut self, one: &str, two: &str) {
        if let Some(inner) = self.0.get_mut(one) {
            inner.remove(two);
            if inner.is_empty() {
                self.0.remove(one);
            }
        }
    }

    pub fn retain(&mut self, keep: impl Fn(&str, &str, &V) -> bool) {
        self.0.retain(|one, inner| {
            inner.retain(|two, value| keep(one, two, value));
            !inner.is_empty()
        });
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &V)> {
        self.0
            .iter()
            .flat_map(|(one, inner)| inner.iter().map(|(two, value)| (one.as_str(), two.as_str(), value)))
    }

    pub fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Removes the first of all.
    pub fn pop_first(&mut self) {
        let Some(mut first) = self.0.first_entry() else { return };
        first.get_mut().pop_first();
        if first.get().is_empty() {
            first.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_holds_what_a_plain_map_holds(steps in proptest::collection::vec(("[ab]", "[a-d]", 0..4_u8), 0..40)) {
            let (mut pairs, mut plain) = (Pairs::default(), BTreeMap::new());
            for (place, (one, two, step)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        pairs.insert(one.clone(), two.clone(), place);
                        plain.insert((one.clone(), two.clone()), place);
                    }
                    2 => {
                        pairs.remove(&one, &two);
                        plain.remove(&(one.clone(), two.clone()));
                    }
                    _ => {
                        pairs.pop_first();
                        plain.pop_first();
                    }
                }
                prop_assert_eq!(pairs.get(&one, &two), plain.get(&(one, two)));
                let all: Vec<_> = pairs.iter().map(|(one, two, v)| ((one.to_owned(), two.to_owned()), *v)).collect();
                prop_assert_eq!(all, plain.clone().into_iter().collect::<Vec<_>>());
                prop_assert_eq!(pairs.len(), plain.len());
            }
        }
    }
}
