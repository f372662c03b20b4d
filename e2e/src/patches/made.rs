//! Makes random merge patches and strategic merge patches that fit an object.

use emco_engine::edits::Patch;
use serde_json::{Map, Value, json};

use crate::random::Random;

/// Fields that say which item of a list is which.
const KEYS: [&str; 8] =
    ["name", "containerPort", "port", "mountPath", "devicePath", "ip", "topologyKey", "uid"];
/// Lists that Kubernetes merges wherever they are, below nothing but maps and other such lists.
const MERGED: [&str; 9] = [
    "containers",
    "initContainers",
    "env",
    "volumeMounts",
    "volumeDevices",
    "volumes",
    "hostAliases",
    "topologySpreadConstraints",
    "webhooks",
];

/// A merge patch.
pub(super) fn merge(random: &mut Random, object: &Value) -> Patch {
    Patch::Merge(Maker { random, kind: kind(object), is_strategic: false }.top(object))
}

/// A strategic merge patch, with directives here and there.
pub(super) fn strategic(random: &mut Random, object: &Value) -> Patch {
    Patch::Strategic(Maker { random, kind: kind(object), is_strategic: true }.top(object))
}

fn kind(object: &Value) -> &str {
    object["kind"].as_str().unwrap_or_default()
}

/// Another value of the same type.
pub(super) fn scalar(random: &mut Random, value: &Value) -> Value {
    match value {
        Value::Bool(value) => json!(!value),
        Value::Number(_) => json!(random.below(1000)),
        _ => word(random),
    }
}

fn word(random: &mut Random) -> Value {
    json!(format!("word-{}", random.below(50)))
}

/// The same with other values here and there, as something that is taken as a whole.
pub(super) fn plain(random: &mut Random, value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(field, value)| (field.clone(), plain(random, value)))
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| plain(random, item)).collect();
            if !items.is_empty() && random.below(5) == 0 {
                items.remove(random.place(items.len()));
            }
            Value::Array(items)
        }
        _ if random.below(3) == 0 => scalar(random, value),
        _ => value.clone(),
    }
}

struct Maker<'a> {
    random: &'a mut Random,
    kind: &'a str,
    is_strategic: bool,
}

impl Maker<'_> {
    /// True in so many of a hundred cases.
    fn chance(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    /// A directive, which merge patches have none of.
    fn directive(&mut self, percent: u64) -> bool {
        self.is_strategic && self.chance(percent)
    }

    fn top(&mut self, object: &Value) -> Value {
        let mut patch = Map::new();
        for (field, value) in object.as_object().into_iter().flatten() {
            match field.as_str() {
                "apiVersion" | "kind" => {}
                "metadata" => drop(patch.insert(field.clone(), self.metadata(value))),
                _ if self.chance(80) => self.field(&mut patch, field, value),
                _ => {}
            }
        }
        Value::Object(patch)
    }

    /// Name and namespace are left alone.
    fn metadata(&mut self, metadata: &Value) -> Value {
        let mut patch = Map::new();
        for field in ["labels", "annotations", "finalizers"] {
            if self.chance(30)
                && let Some(value) = metadata.get(field)
            {
                self.field(&mut patch, field, value);
            }
        }
        if patch.is_empty() {
            patch.insert("labels".to_owned(), json!({"patched": word(self.random)}));
        }
        Value::Object(patch)
    }

    fn field(&mut self, patch: &mut Map<String, Value>, field: &str, value: &Value) {
        let new = match value {
            _ if self.chance(6) => Value::Null,
            Value::Object(map) => Value::Object(self.map(field, map)),
            Value::Array(items)
                if !items.is_empty() && self.merges(field) && items.iter().all(Value::is_object) =>
            {
                return self.items(patch, field, items);
            }
            Value::Array(items) if items.iter().all(Value::is_string) => {
                return self.words(patch, field, items);
            }
            Value::Array(_) => plain(self.random, value),
            _ => scalar(self.random, value),
        };
        patch.insert(field.to_owned(), new);
    }

    fn merges(&self, field: &str) -> bool {
        let of_this = match field {
            "imagePullSecrets" => self.kind != "ServiceAccount",
            "secrets" => self.kind == "ServiceAccount",
            "ports" => self.kind != "EndpointSlice",
            _ => MERGED.contains(&field),
        };
        self.is_strategic && of_this
    }

    fn map(&mut self, field: &str, map: &Map<String, Value>) -> Map<String, Value> {
        // Kubernetes replaces the selector of a disruption budget, and leaves the directives in it.
        let is_whole = self.kind == "PodDisruptionBudget" && field == "selector";
        if !is_whole && self.directive(3) {
            return Map::from_iter([("$patch".to_owned(), json!("delete"))]);
        }
        if !is_whole && self.directive(3) {
            let whole = plain(self.random, &Value::Object(map.clone()));
            let mut whole = whole.as_object().cloned().unwrap_or_default();
            whole.insert("$patch".to_owned(), json!("replace"));
            return whole;
        }
        if is_whole {
            return plain(self.random, &Value::Object(map.clone())).as_object().cloned().unwrap_or_default();
        }
        let mut patch = self.fields(map, &[]);
        if self.chance(15) {
            let added = json!({"a": null, "b": word(self.random), "c": {"d": null}});
            let added = if self.chance(50) { added } else { word(self.random) };
            patch.insert("added".to_owned(), added);
        }
        if self.directive(5) {
            self.retain(&mut patch, map);
        }
        patch
    }

    fn fields(&mut self, map: &Map<String, Value>, besides: &[&str]) -> Map<String, Value> {
        let mut patch = Map::new();
        for (field, value) in map {
            if !besides.contains(&field.as_str()) && self.chance(45) {
                self.field(&mut patch, field, value);
            }
        }
        patch
    }

    /// Keeps what the patch sets, and some of the rest.
    fn retain(&mut self, patch: &mut Map<String, Value>, map: &Map<String, Value>) {
        let set = patch.iter().filter(|(field, value)| !value.is_null() && !field.starts_with('$'));
        let mut kept: Vec<String> = set.map(|(field, _)| field.clone()).collect();
        for field in map.keys() {
            if self.chance(50) && !kept.contains(field) {
                kept.push(field.clone());
            }
        }
        patch.insert("$retainKeys".to_owned(), json!(kept));
    }

    /// Words in a list: some are taken out, or the list is another one.
    fn words(&mut self, patch: &mut Map<String, Value>, field: &str, items: &[Value]) {
        if !items.is_empty() && self.directive(25) {
            let gone = json!([self.random.of(items), "nowhere"]);
            patch.insert(format!("$deleteFromPrimitiveList/{field}"), gone);
            return;
        }
        let mut list = items.to_vec();
        self.random.shuffle(&mut list);
        list.truncate(self.random.place(list.len() + 1));
        let new = word(self.random);
        if !list.contains(&new) {
            list.push(new);
        }
        patch.insert(field.to_owned(), Value::Array(list));
    }

    /// A list that is merged by key: items are changed, deleted and added, in any order.
    fn items(&mut self, patch: &mut Map<String, Value>, field: &str, items: &[Value]) {
        if self.chance(4) {
            let mut list = vec![json!({"$patch": "replace"})];
            list.extend(items.iter().map(|item| Value::Object(keys(item))));
            patch.insert(field.to_owned(), Value::Array(list));
            return;
        }
        let mut all = items.to_vec();
        if self.chance(30) {
            let new = self.new_item(items);
            all.push(new);
        }
        self.random.shuffle(&mut all);
        let mut list = Vec::new();
        let mut order = Vec::new();
        for item in &all {
            let keys = keys(item);
            let is_new = !items.contains(item);
            if !is_new && self.chance(12) {
                let mut deleted = keys;
                deleted.insert("$patch".to_owned(), json!("delete"));
                list.push(Value::Object(deleted));
                continue;
            }
            order.push(Value::Object(keys.clone()));
            if is_new {
                list.push(item.clone());
            } else if self.chance(50) {
                list.push(Value::Object(self.changed(item, keys)));
            }
        }
        if self.chance(20) {
            patch.insert(format!("$setElementOrder/{field}"), Value::Array(order));
        }
        patch.insert(field.to_owned(), Value::Array(list));
    }

    fn changed(&mut self, item: &Value, keys: Map<String, Value>) -> Map<String, Value> {
        let Some(map) = item.as_object() else {
            return keys;
        };
        let mut changed = self.fields(map, &KEYS);
        changed.extend(keys);
        if self.directive(8) {
            self.retain(&mut changed, map);
        }
        changed
    }

    /// Like one of the items, under other keys.
    fn new_item(&mut self, items: &[Value]) -> Value {
        let mut item = self.random.of(items).clone();
        for (key, value) in keys(&item) {
            item[&key] = match value.as_u64() {
                Some(number) => json!(number + 1000),
                None => json!(format!("{}-new", value.as_str().unwrap_or_default())),
            };
        }
        item
    }
}

fn keys(item: &Value) -> Map<String, Value> {
    let fields = item.as_object().into_iter().flatten();
    let keys = fields.filter(|(field, value)| KEYS.contains(&field.as_str()) && !value.is_object());
    keys.map(|(field, value)| (field.clone(), value.clone())).collect()
}
