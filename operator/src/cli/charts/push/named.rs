//! Finds the apps of a CompositeApp whose chart is in a ConfigMap, and their spec with the digest of that.

use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::{KEY, Place};

/// What a CompositeApp has of a chart.
#[derive(Debug, Default)]
pub struct Named {
    /// Apps that name it, if there are any.
    pub apps: Vec<String>,
    /// How many of them have another digest, or none.
    pub set: usize,
    /// Fields of the spec with the digest.
    pub spec: Value,
}

/// The apps that name the chart of a place. Whatever else their object has stays as it is, also what this version does not know.
pub fn find(object: &DynamicObject, place: &Place, digest: &str) -> Named {
    let mut named = Named::default();
    let mut apps = object.data["spec"]["apps"].clone();
    for app in apps.as_array_mut().into_iter().flatten() {
        let reference = &app["chart"]["configMapRef"];
        let key = reference["key"].as_str().unwrap_or(KEY);
        if reference["name"] != place.name.as_str() || key != place.key {
            continue;
        }
        named.apps.push(app["name"].as_str().unwrap_or_default().to_owned());
        if app["chart"]["digest"] != digest {
            named.set += 1;
            app["chart"]["digest"] = json!(digest);
        }
    }
    named.spec = json!({"apps": apps});
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn apps_that_name_the_chart_get_its_digest_and_keep_all_else() {
        let of = |name: &str, reference: Value| json!({"name": name, "chart": {"configMapRef": reference}, "later": 1});
        let apps = json!([
            of("web", json!({"name": "web"})),
            of("key", json!({"name": "web", "key": "other.tgz"})),
            of("same", json!({"name": "web", "key": "chart.tgz"})),
            of("map", json!({"name": "other"})),
            {"name": "git", "chart": {"git": {"url": "https://example.com", "ref": {"tag": "v1"}}}},
        ]);
        let mut object: DynamicObject = serde_json::from_value(json!({
            "apiVersion": "emco.io/v1alpha1", "kind": "CompositeApp", "metadata": {"name": "shop"}, "spec": {"apps": apps},
        }))
        .unwrap();
        let [namespace, name, key] = ["shop", "web", KEY].map(str::to_owned);
        let place = Place { namespace, name, key };
        let named = find(&object, &place, "sha256:new");
        assert_eq!((named.apps, named.set), (vec!["web".to_owned(), "same".to_owned()], 2));
        let digests: Vec<&Value> =
            named.spec["apps"].as_array().unwrap().iter().map(|app| &app["chart"]["digest"]).collect();
        let (new, none) = (&json!("sha256:new"), &Value::Null);
        assert_eq!(digests, [new, none, new, none, none]);
        assert_eq!(named.spec["apps"][0]["later"], 1);
        object.data["spec"] = named.spec;
        let again = find(&object, &place, "sha256:new");
        assert_eq!((again.apps.len(), again.set), (2, 0));
    }
}
