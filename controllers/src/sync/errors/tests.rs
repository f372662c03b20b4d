use super::*;

fn status(code: u16, message: &str) -> ApiError {
    let (reason, causes) = (String::new(), Vec::new());
    ApiError::Status { code, reason, message: message.to_owned(), retry_after: None, causes }
}

#[test]
fn a_500_of_a_wrong_manifest_is_a_rejection_and_not_an_outage() {
    let trouble = Trouble::of_apply(&status(
        500,
        "failed to create typed patch object: .spec.x: field not declared in schema",
    ));
    assert_eq!((trouble.reason, trouble.retry), ("Invalid", Retry::Slowly));
    let trouble = Trouble::of_apply(&status(500, "etcdserver: request timed out"));
    assert_eq!((trouble.reason, trouble.retry), ("ServerError", Retry::Soon));
}

#[test]
fn a_server_that_answers_with_an_error_is_not_unreachable() {
    let webhook = "Internal error occurred: failed calling webhook \"deny.example.com\": connection refused";
    let no_kubernetes = ApiError::Protocol("<html>".to_owned());
    for error in [status(500, webhook), status(502, "bad gateway"), no_kubernetes] {
        for trouble in [Trouble::of_apply(&error), Trouble::of_request(&error)] {
            assert_eq!((trouble.reason, trouble.retry), ("ServerError", Retry::Soon), "{error}");
            assert!(!trouble.is_failure() && error.to_string().contains(&trouble.message), "{error}");
        }
    }
    let away = ApiError::Unreachable { reason: "Timeout", message: "no answer".to_owned() };
    for trouble in [Trouble::of_apply(&away), Trouble::of_request(&away)] {
        assert_eq!((trouble.reason, trouble.retry), ("Unreachable", Retry::Soon));
    }
}

#[test]
fn every_refusal_keeps_its_own_reason_and_the_servers_words() {
    for (code, message, reason) in [
        (
            422,
            "Deployment.apps \"web\" is invalid: spec.selector: Invalid value: field is immutable",
            "ImmutableField",
        ),
        (
            422,
            "StatefulSet.apps \"db\" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
            "ImmutableField",
        ),
        (422, "Service \"web\" is invalid: spec.ports: Required value", "Invalid"),
        (403, "deployments.apps is forbidden: User cannot patch", "Forbidden"),
        (404, "namespaces \"shop\" not found", "Progressing"),
        (404, "the server could not find the requested resource", "KindMissing"),
        (405, "create not allowed while custom resource definition is terminating", "KindMissing"),
    ] {
        let trouble = Trouble::of_apply(&status(code, message));
        assert_eq!(trouble.reason, reason, "{message}");
        let message = message.split_once("is invalid: ").map_or(message, |(_, rest)| rest);
        assert_eq!(trouble.message, message);
    }
}

#[test]
fn a_right_that_the_account_of_cluster_add_lacks_is_named_with_the_cure() {
    let words = "deployments.apps \"web\" is forbidden: User \"system:serviceaccount:emco-system:emco-hub\" cannot patch resource \
                 \"deployments\" in API group \"apps\" in the namespace \"shop\"";
    let trouble = Trouble::of_apply(&status(403, words));
    assert_eq!((trouble.reason, trouble.retry), ("Forbidden", Retry::Slowly));
    assert!(trouble.message.contains("(--level, docs/clusters.md)"), "{}", trouble.message);
    let right = "cannot patch resource \"deployments\" in API group \"apps\" in the namespace \"shop\"";
    assert!(trouble.message.ends_with(right), "{}", trouble.message);
    let other = words.replace("emco-hub", "emco-tenant");
    assert_eq!(Trouble::of_apply(&status(403, &other)).message, other);
}

#[test]
fn rights_beyond_what_somebody_has_are_named_however_long_the_name() {
    let words = |user: &str| {
        format!(
            "roles.rbac.authorization.k8s.io \"emco-tenant-own\" is forbidden: user \"{user}\" (groups=[\"system:serviceaccounts\" \
             \"system:serviceaccounts:emco-system\" \"system:authenticated\"]) is attempting to grant RBAC permissions not currently \
             held:\n{{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"create\"]}}"
        )
    };
    let hub = Trouble::of_apply(&status(403, &words("system:serviceaccount:emco-system:emco-hub")));
    assert!(
        hub.message.contains("at most the ClusterRole emco-ceiling is given; attempting to grant"),
        "{}",
        hub.message
    );
    assert!(hub.message.ends_with("Resources:[\"secrets\"], Verbs:[\"create\"]}"), "{}", hub.message);
    let tenant = Trouble::of_apply(&status(403, &words("system:serviceaccount:shop:emco-tenant")));
    assert!(tenant.message.contains("not currently held: {APIGroups"), "{}", tenant.message);
}

#[test]
fn only_validation_with_all_its_fields_proves_what_is_refused() {
    let own = "Deployment.apps \"web\" is invalid: spec.selector: Invalid value: field is immutable";
    let of = |message: &str, fields: &[&str]| {
        let causes = fields.iter().map(|field| ((*field).to_owned(), "field is immutable".to_owned()));
        let (reason, causes) = ("Invalid".to_owned(), causes.collect());
        ApiError::Status { code: 422, reason, message: message.to_owned(), retry_after: None, causes }
    };
    assert!(names_each_field(&of(own, &["spec.selector"])));
    let policy = "deployments.apps \"web\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: it is immutable";
    let webhook = "admission webhook \"w\" denied the request: spec.selector is immutable";
    for (message, fields) in [
        (own, &[][..]),
        (own, &["spec.selector", ""][..]),
        (own, &["<nil>"][..]),
        (own, &["spec"; CAUSES][..]),
        (policy, &[""][..]),
        (webhook, &["spec.selector"][..]),
    ] {
        assert!(!names_each_field(&of(message, fields)), "{message} {fields:?}");
    }
}

#[test]
fn the_cure_of_a_missing_namespace_fits_into_a_row() {
    for cure in [A_CHART_NAMES_IT, A_PERMISSION_NAMES_IT] {
        let trouble = Trouble::no_namespace(&"n".repeat(63), cure);
        assert!(trouble.is_failure() && trouble.retry == Retry::Soon);
        assert!(trouble.message.ends_with("; it is tried again"), "{}", trouble.message);
    }
}

#[test]
fn an_overloaded_server_says_when() {
    let error = ApiError::Status {
        code: 429,
        reason: "TooManyRequests".to_owned(),
        message: "too many requests".to_owned(),
        retry_after: Some(7),
        causes: Vec::new(),
    };
    let trouble = Trouble::of_apply(&error);
    assert_eq!((trouble.reason, trouble.retry), ("ServerError", Retry::After(7)));
}

#[test]
fn a_long_refusal_keeps_the_last_right_and_has_the_whole_beside_it() {
    let rules = "{APIGroups:[\"apps\"], Resources:[\"deployments\"], Verbs:[\"get\"]}\n".repeat(9);
    let words = format!(
        "roles \"own\" is forbidden: user \"system:serviceaccount:shop:emco-tenant\" (groups=[\"system:authenticated\"]) is attempting \
         to grant RBAC permissions not currently held:\n{rules}{{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"create\"]}}"
    );
    let trouble = Trouble::of_apply(&status(403, &words));
    let last = "Resources:[\"secrets\"], Verbs:[\"create\"]}";
    let said = trouble.message.as_str();
    assert!(said.len() <= LONGEST && said.starts_with(GIVES_MORE) && said.ends_with(last), "{said}");
    let whole = trouble.whole.as_deref().unwrap();
    assert_eq!(whole.matches("APIGroups").count(), 10, "{whole}");
    assert_eq!(trouble.words(), whole);
    let short = Trouble::of_apply(&status(403, "no"));
    assert_eq!((short.whole.as_deref(), short.words()), (None, "no"));
}

#[test]
fn messages_have_256_bytes_at_most_and_are_cut_at_characters() {
    let long = "ü".repeat(300);
    assert!(cut(&long).len() <= 256 && cut(&long).contains("ü ... ü"));
}
