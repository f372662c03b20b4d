//! Values by one verb: lists, maps and structs print their parts by the same verb.
use super::{MAX_DEPTH, Printer};
use crate::limits::fits;
use crate::value::{Kind, List, ListType, Map, Object, Value};

impl Printer {
    /// A value given to a formatting function.
    pub(super) fn argument(&mut self, value: &Value, verb: char) {
        match (value, verb) {
            (Value::Nil, 'T' | 'v') => self.pad(b"<nil>"),
            // Only error values may be wrapped by `%w`, and templates have none.
            (Value::Nil, _) | (_, 'w') => self.bad_verb(value, verb),
            (_, 'T') => self.string(value.type_name().as_bytes(), 's', value),
            _ => self.value(value, verb, 0),
        }
    }

    pub(super) fn value(&mut self, value: &Value, verb: char, depth: usize) {
        if depth > MAX_DEPTH || !fits(self.out.len()) {
            self.out.extend_from_slice(b"...");
            return;
        }
        match value {
            Value::Nil if self.flags.sharp_v => self.out.extend_from_slice(b"interface {}(nil)"),
            Value::Nil => self.out.extend_from_slice(b"<nil>"),
            Value::Bool(value) => self.boolean(*value, verb),
            Value::Int(int) => self.integer(*int, verb),
            Value::Float(float) => self.float(*float, verb),
            Value::Complex(re, im) => self.complex(*re, *im, verb),
            Value::Text(text) => self.string(text.as_bytes(), verb, value),
            Value::List(list) => self.list(list, verb, depth),
            Value::Map(map) => self.map(map, verb, depth),
            Value::Object(object) => self.object(object.as_ref(), value, verb, depth),
        }
    }

    /// Go's complaint about a verb that does not fit: `%!d(string=x)`.
    pub(super) fn bad_verb(&mut self, value: &Value, verb: char) {
        let erroring = std::mem::replace(&mut self.erroring, true);
        self.out.extend_from_slice(format!("%!{verb}(").as_bytes());
        if let Value::Nil = value {
            self.out.extend_from_slice(b"<nil>");
        } else {
            self.out.extend_from_slice(value.type_name().as_bytes());
            self.out.push(b'=');
            self.value(value, 'v', 0);
        }
        self.out.push(b')');
        self.erroring = erroring;
    }

    fn separator(&mut self, i: usize) {
        if i > 0 {
            self.out.extend_from_slice(if self.flags.sharp_v { b", " } else { b" " });
        }
    }

    fn list(&mut self, list: &List, verb: char, depth: usize) {
        if list.list_type() == ListType::Bytes && matches!(verb, 's' | 'q' | 'x' | 'X') {
            let bytes = bytes(list);
            self.string(&bytes, verb, &Value::List(list.clone()));
            return;
        }
        let sharp = self.flags.sharp_v;
        if sharp {
            self.out.extend_from_slice(list.list_type().name().as_bytes());
            if list.is_nil() {
                self.out.extend_from_slice(b"(nil)");
                return;
            }
        }
        self.out.push(if sharp { b'{' } else { b'[' });
        for (i, item) in list.items().iter().enumerate() {
            self.separator(i);
            self.value(item, verb, depth + 1);
        }
        self.out.push(if sharp { b'}' } else { b']' });
    }

    fn map(&mut self, map: &Map, verb: char, depth: usize) {
        let sharp = self.flags.sharp_v;
        if sharp {
            self.out.extend_from_slice(map.map_type().name().as_bytes());
            if map.is_nil() {
                self.out.extend_from_slice(b"(nil)");
                return;
            }
            self.out.push(b'{');
        } else {
            self.out.extend_from_slice(b"map[");
        }
        for (i, (key, value)) in map.entries().iter().enumerate() {
            self.separator(i);
            self.value(&Value::Text(key.clone()), verb, depth + 1);
            self.out.push(b':');
            self.value(value, verb, depth + 1);
        }
        self.out.push(if sharp { b'}' } else { b']' });
    }

    fn object(&mut self, object: &dyn Object, value: &Value, verb: char, depth: usize) {
        if !self.erroring
            && !self.flags.sharp_v
            && matches!(verb, 'v' | 's' | 'x' | 'X' | 'q')
            && let Some(text) = object.display()
        {
            self.string(&text, verb, value);
            return;
        }
        match object.kind() {
            Kind::Struct => self.fields(object, verb, depth),
            Kind::Pointer if depth == 0 => {
                self.out.push(b'&');
                self.fields(object, verb, depth);
            }
            // Where Go prints an address, no two renders of Helm are alike.
            Kind::Pointer if matches!(verb, 'v' | 'p' | 'b' | 'o' | 'd' | 'x' | 'X') => {
                self.out.extend_from_slice(b"0xc000000000");
            }
            Kind::Pointer => self.bad_verb(value, verb),
            _ => self.value(&object.plain(), verb, depth + 1),
        }
    }

    fn fields(&mut self, object: &dyn Object, verb: char, depth: usize) {
        if self.flags.sharp_v {
            self.out.extend_from_slice(object.type_name().trim_start_matches('*').as_bytes());
        }
        self.out.push(b'{');
        let named = self.flags.plus_v || self.flags.sharp_v;
        let names = if named { object.field_names() } else { Vec::new() };
        for (i, field) in object.fields().iter().enumerate() {
            self.separator(i);
            if let Some(name) = names.get(i) {
                self.out.extend_from_slice(name.as_bytes());
                self.out.push(b':');
            }
            self.value(field, verb, depth + 1);
        }
        self.out.push(b'}');
    }
}

/// The bytes of a `[]uint8`.
fn bytes(list: &List) -> Vec<u8> {
    let byte = |item: &Value| match item {
        Value::Int(int) => int.wrapping_u64().to_le_bytes().first().copied().unwrap_or(0),
        _ => 0,
    };
    list.items().iter().map(byte).collect()
}
