//! `--set-literal`: one name and a value that is taken as it is, commas and backslashes included.
use super::{Stop, failed, index, inner_list, inner_map, nesting, place, set, set_index};
use crate::value::{Map, Value};

struct Parser<'a> {
    rest: &'a str,
}

/// `--set-literal`
pub fn parse_literal_into(text: &str, values: &Map) -> Result<(), String> {
    let mut parser = Parser { rest: text };
    loop {
        match parser.key(values, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Failed(message)) => return Err(message),
        }
    }
}

impl Parser<'_> {
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        match self.rest.find(stops) {
            Some(at) => {
                let (text, rest) = self.rest.split_at(at);
                let stop = rest.chars().next();
                self.rest = rest.get(stop.map_or(0, char::len_utf8)..).unwrap_or_default();
                (text.to_owned(), stop)
            }
            None => (std::mem::take(&mut self.rest).to_owned(), None),
        }
    }

    /// All that is left.
    fn value(&mut self) -> Value {
        Value::from(std::mem::take(&mut self.rest))
    }

    fn key(&mut self, values: &Map, level: usize) -> Result<(), Stop> {
        let (key, stop) = self.until(&['=', '[', '.']);
        match stop {
            None if key.is_empty() => Err(Stop::End),
            None => failed(format!("key {key:?} has no value")),
            Some('=') => {
                let value = self.value();
                set(values, &key, value);
                Ok(())
            }
            Some('[') => {
                let at = self.index()?;
                let list = inner_list(values.get(&key))?;
                // The list is stored even if the rest fails, as an empty value at the end shows.
                match self.item(&list, at, level) {
                    Ok(list) => {
                        set(values, &key, Value::list(list));
                        Ok(())
                    }
                    Err(stop) => {
                        set(values, &key, Value::list(list));
                        Err(stop)
                    }
                }
            }
            Some(_) => {
                nesting(level + 1)?;
                let inner = inner_map(values.get(&key))?;
                let result = self.key(&inner, level + 1);
                if result.is_ok() && inner.is_empty() {
                    return failed(format!("key map {key:?} has no value"));
                }
                if !inner.is_empty() {
                    set(values, &key, Value::Map(inner));
                }
                result
            }
        }
    }

    fn index(&mut self) -> Result<i64, Stop> {
        let (text, stop) = self.until(&[']']);
        if stop.is_none() {
            return failed("error parsing index: EOF");
        }
        index(&text)
    }

    fn item(&mut self, list: &[Value], at: i64, level: usize) -> Result<Vec<Value>, Stop> {
        let at_place = place(at)?;
        let (extra, stop) = self.until(&['[', '.', '=']);
        if !extra.is_empty() {
            return failed(format!("unexpected data at end of array index: {extra:?}"));
        }
        let value = match stop {
            None => return Err(Stop::End),
            Some('=') => self.value(),
            Some('[') => {
                let next = self.index()?;
                let inner = match list.get(at_place) {
                    None | Some(Value::Nil) => Vec::new(),
                    Some(value) => inner_list(Some(value.clone()))?,
                };
                Value::list(self.item(&inner, next, level)?)
            }
            Some(_) => {
                let inner = match list.get(at_place) {
                    Some(Value::Map(map)) => map.clone(),
                    _ => Map::default(),
                };
                self.key(&inner, level)?;
                Value::Map(inner)
            }
        };
        set_index(list, at, value)
    }
}
