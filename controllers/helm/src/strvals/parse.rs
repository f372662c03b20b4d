//! Parses one assignment: follows names and indexes, and sets the value where they lead.
use super::{Reader, Stop, failed, index, inner_list, inner_map, nesting, place, set, set_index};
use crate::gojson;
use crate::value::{Map, Value};

struct Parser<'a, 'r> {
    text: &'a str,
    at: usize,
    reader: Reader<'r>,
}

pub(super) fn parse(text: &str, values: &Map, reader: Reader<'_>) -> Result<(), String> {
    let mut parser = Parser { text, at: 0, reader };
    loop {
        match parser.key(values, 0) {
            Ok(()) => {}
            Err(Stop::End) => return Ok(()),
            Err(Stop::Failed(message)) => return Err(message),
        }
    }
}

impl Parser<'_, '_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest().chars().next()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Text up to one of some characters; a backslash takes the next one as it is, except where all text is literal.
    /// `None` stands for the end.
    fn until(&mut self, stops: &[char]) -> (String, Option<char>) {
        let mut out = String::new();
        while let Some(c) = self.next() {
            if stops.contains(&c) {
                return (out, Some(c));
            }
            if c == '\\' && !matches!(self.reader, Reader::Literal) {
                match self.next() {
                    Some(c) => out.push(c),
                    None => return (out, None),
                }
            } else {
                out.push(c);
            }
        }
        (out, None)
    }

    fn key(&mut self, values: &Map, level: usize) -> Result<(), Stop> {
        let stops: &[char] =
            if matches!(self.reader, Reader::Literal) { &['=', '[', '.'] } else { &['=', '[', '.', ','] };
        let (key, stop) = self.until(stops);
        match stop {
            None if key.is_empty() => Err(Stop::End),
            None => failed(format!("key {key:?} has no value")),
            Some('[') => {
                let index = self.index()?;
                let old = inner_list(values.get(&key))?;
                // The list is stored even if the rest fails, as an empty value at the end shows.
                let (list, result) = match self.item(&old, index, level) {
                    Ok(new) => (new, Ok(())),
                    Err(stop) => (old, Err(stop)),
                };
                set(values, &key, Value::list(list));
                result
            }
            Some('=') => self.assign(values, &key),
            Some(',') => {
                set(values, &key, Value::text(""));
                failed(format!("key {key:?} has no value (cannot end with ,)"))
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

    fn assign(&mut self, values: &Map, key: &str) -> Result<(), Stop> {
        let ends_here = self.rest().is_empty() && !matches!(self.reader, Reader::Json | Reader::Literal);
        let value = self.value()?;
        set(values, key, value);
        if ends_here { Err(Stop::End) } else { Ok(()) }
    }

    /// What stands after `=`, as its kind of assignment reads it.
    fn value(&mut self) -> Result<Value, Stop> {
        match self.reader {
            Reader::Json => self.json(),
            Reader::Literal => {
                let text = self.rest();
                let value = Value::from(text);
                self.at = self.text.len();
                Ok(value)
            }
            _ if self.rest().is_empty() => Ok(Value::text("")),
            _ => {
                if let Some(list) = self.list()? {
                    return Ok(list);
                }
                let (text, _) = self.until(&[',']);
                self.read(&text)
            }
        }
    }

    fn read(&mut self, text: &str) -> Result<Value, Stop> {
        match &mut self.reader {
            Reader::File(read) => read(text).map_err(Stop::Failed),
            Reader::Typed => Ok(typed(text)),
            Reader::Text | Reader::Json | Reader::Literal => Ok(Value::from(text)),
        }
    }

    /// `{a,b}`, if there is one.
    fn list(&mut self) -> Result<Option<Value>, Stop> {
        if !self.rest().starts_with('{') {
            return Ok(None);
        }
        self.next();
        let mut items = Vec::new();
        loop {
            let (text, stop) = self.until(&[',', '}']);
            match stop {
                None => return failed("list must terminate with '}'"),
                Some('}') => {
                    if self.rest().starts_with(',') {
                        self.next();
                    }
                    items.push(self.read(&text)?);
                    return Ok(Some(Value::list(items)));
                }
                Some(_) => items.push(self.read(&text)?),
            }
        }
    }

    /// A JSON value and the comma after it; nothing is null.
    fn json(&mut self) -> Result<Value, Stop> {
        if self.skip_blank() {
            return Ok(Value::Nil);
        }
        let (value, length) = gojson::decode_prefix(self.rest().as_bytes()).map_err(Stop::Failed)?;
        self.at += length;
        self.skip_blank();
        Ok(value)
    }

    /// Skips blanks; true if a comma or the end follows, which is taken.
    fn skip_blank(&mut self) -> bool {
        loop {
            let before = self.at;
            match self.next() {
                None | Some(',') => return true,
                Some(c) if c.is_whitespace() => {}
                Some(_) => {
                    self.at = before;
                    return false;
                }
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

    /// What follows `name[index]`: the list with that item set.
    fn item(&mut self, list: &[Value], at: i64, level: usize) -> Result<Vec<Value>, Stop> {
        let at_place = place(at)?;
        let (extra, stop) = self.until(&['[', '.', '=']);
        if !extra.is_empty() {
            return failed(format!("unexpected data at end of array index: {extra:?}"));
        }
        match stop {
            None => Err(Stop::End),
            Some('=') => {
                let value = self.value()?;
                set_index(list, at, value)
            }
            Some('[') => {
                let next = self.index()?;
                let inner = match list.get(at_place) {
                    None | Some(Value::Nil) => Vec::new(),
                    Some(value) => inner_list(Some(value.clone()))?,
                };
                let inner = self.item(&inner, next, level)?;
                set_index(list, at, Value::list(inner))
            }
            Some(_) => {
                // An item that is no map is replaced by one.
                let inner = match list.get(at_place) {
                    Some(Value::Map(map)) => map.clone(),
                    _ => Map::default(),
                };
                self.key(&inner, level)?;
                set_index(list, at, Value::Map(inner))
            }
        }
    }
}

/// Text as `--set` reads it. Numbers with leading zeros stay text.
fn typed(text: &str) -> Value {
    if text.eq_ignore_ascii_case("true") {
        return Value::Bool(true);
    }
    if text.eq_ignore_ascii_case("false") {
        return Value::Bool(false);
    }
    if text.eq_ignore_ascii_case("null") {
        return Value::Nil;
    }
    if text == "0" {
        return Value::int64(0);
    }
    let number = text.strip_prefix(['+', '-']).unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
    match text.parse() {
        Ok(int) if number && !text.starts_with('0') => Value::int64(int),
        _ => Value::from(text),
    }
}
