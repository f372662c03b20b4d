use super::*;

/// Reads files of a folder of its own.
fn read(files: &[(&str, &str)], namespace: Option<&str>) -> Result<Objects, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    Objects::read(&[folder.path().to_owned()], namespace, &OF_DIGESTS)
        .map_err(|error| format!("{error:#}").replace(folder.path().to_str().unwrap(), "DIR"))
}

fn refused(files: &[(&str, &str)]) -> String {
    read(files, None).map(|_| ()).unwrap_err()
}

const MAP_OF_NOBODY: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: charts}}";

#[test]
fn a_folder_that_kustomize_builds_is_refused() {
    for name in ["kustomization.yaml", "kustomization.yml", "Kustomization"] {
        let said = refused(&[(name, "resources: [a.yaml]")]);
        let wanted = "DIR is built by Kustomize, which may change what counts: kubectl kustomize DIR | kubectl emco digest -f -";
        assert_eq!(said, wanted);
    }
}

#[test]
fn an_object_without_a_namespace_matters_only_where_it_is_meant() {
    let found = read(&[("a.yaml", MAP_OF_NOBODY)], None).unwrap();
    assert!(found.map("shop", "other").unwrap().is_none());
    let said = found.map("shop", "charts").unwrap_err().to_string();
    assert!(said.ends_with("a.yaml: ConfigMap charts names no namespace, which counts: name the one that it is applied to with --namespace"), "{said}");
    let found = read(&[("a.yaml", MAP_OF_NOBODY)], Some("shop")).unwrap();
    assert!(found.map("shop", "charts").unwrap().is_some());
}

#[test]
fn objects_are_found_in_lists_and_not_in_what_git_keeps() {
    let list = format!("{{apiVersion: v1, kind: List, items: [{MAP_OF_NOBODY}]}}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".git")).unwrap();
    std::fs::write(folder.path().join(".git/a.yaml"), "a: [").unwrap();
    std::fs::write(folder.path().join("list.json"), list).unwrap();
    let found = Objects::read(&[folder.path().to_owned()], Some("shop"), &OF_DIGESTS).unwrap();
    assert!(found.map("shop", "charts").unwrap().is_some());
}

#[test]
fn what_does_not_parse_is_named_without_what_it_says() {
    let said = refused(&[("a.yaml", "kind: Secret\nstringData: {[x]: hunter2}\n")]);
    assert!(said.starts_with("DIR/a.yaml: ") && !said.contains("hunter2"), "{said}");
}

#[test]
fn an_object_of_ours_needs_a_name_and_fields_that_are_known() {
    let app = |rest: &str| format!("{{apiVersion: emco.io/v1alpha1, kind: CompositeApp, {rest}}}");
    let said = refused(&[("a.yaml", &app("metadata: {namespace: shop}"))]);
    let wanted = "DIR/a.yaml: a CompositeApp has no metadata.name, by which others refer to it: give it one";
    assert_eq!(said, wanted);
    let said = refused(&[("a.yaml", &app("metadata: {name: a, namespace: shop}, spec: {aps: []}"))]);
    let wanted = "DIR/a.yaml: CompositeApp a: spec.aps is not known here: correct it, or use the kubectl-emco of the hub's release";
    assert_eq!(said, wanted);
}

#[test]
fn more_than_sixteen_mebibytes_are_not_read() {
    let schemas = Schemas::of(OF_DIGESTS.ours);
    let mut reader = Reader { kinds: &OF_DIGESTS, namespace: None, schemas, found: Objects(BTreeMap::new()) };
    let said = reader.stream(Path::new("endless"), std::io::repeat(b' ')).unwrap_err();
    assert_eq!(said.to_string(), "endless has more than 16 MiB");
}
