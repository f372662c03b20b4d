//! The rows of the chapter "On a cluster", and the tests that show what they say.

use super::Row;

pub const CLUSTER: &[Row] = &[
    ("A manifest is refused", &["a_refused_manifest_is_failed_with_the_servers_words_and_never_applied"]),
    (
        "A change touches a field that cannot be changed",
        &[
            "a_field_that_cannot_be_changed_fails_and_names_recreate",
            "what_cannot_be_changed_is_made_again_and_volumes_stay",
            "a_volume_claim_is_never_deleted_and_says_why",
        ],
    ),
    (
        "A kind is not there yet",
        &[
            "a_custom_resource_waits_for_its_kind_and_the_rest_does_not",
            "an_object_whose_kind_comes_late_is_made_once_and_kept",
        ],
    ),
    (
        "The definition of a kind is made anew, or comes back with fewer versions",
        &[
            "a_definition_made_anew_is_answered_by_a_list_at_once",
            "an_object_that_is_there_is_seen_when_a_version_of_its_kind_is_gone",
            "a_version_that_is_gone_is_named_with_the_definition_that_stays",
        ],
    ),
    (
        "A manifest names a namespace that is not there",
        &[
            "a_namespace_that_nobody_makes_fails_at_once_with_its_cure",
            "a_namespace_that_another_app_of_the_target_makes_is_waited_for",
        ],
    ),
    (
        "The object is somebody else's",
        &[
            "a_foreign_object_is_named_with_its_manager_and_not_changed",
            "what_people_made_alike_is_taken_over_and_left_in_the_end",
            "what_differs_is_listed_then_held_by_its_manager_then_forced",
        ],
    ),
    (
        "An object of others that is used as it is goes: the namespace of a logical cloud of level `Admin` that was there before, a definition that a chart has in `crds/`",
        &[
            "what_was_taken_from_others_and_goes_is_made_within_minutes",
            "what_was_taken_from_others_is_made_at_once_where_it_is_missed",
        ],
    ),
    (
        "A namespace that EMCO made is to go, and holds something that EMCO did not make, or a volume claim",
        &[
            "a_namespace_that_was_released_is_taken_again_and_goes_when_it_is_empty",
            "a_cluster_that_was_drained_and_is_enabled_has_its_namespace_again",
            "a_grant_that_was_withdrawn_and_is_given_brings_the_namespace_back",
            "clusters_that_were_narrowed_and_are_widened_have_the_namespace_again",
            "a_namespace_that_keeps_data_is_taken_again_with_the_next_deployment",
            "what_every_namespace_of_a_cluster_has_keeps_none",
        ],
    ),
    (
        "An object that is removed does not go: a finalizer holds it, or what is left in a namespace",
        &[
            "a_held_object_that_goes_last_is_named_and_fails_with_the_deadline",
            "what_a_finalizer_holds_is_named_in_the_status_of_a_deployment",
            "a_namespace_says_what_holds_it_and_nothing_of_the_cluster",
        ],
    ),
    (
        "An old object does not go, with `spec.sync.prune: Before`",
        &[
            "nothing_new_comes_before_what_must_go_first_is_gone",
            "an_object_that_does_not_go_is_named_with_its_finalizer",
        ],
    ),
    (
        "A hook fails",
        &[
            "a_hook_that_does_not_end_holds_the_rest_and_fails_by_its_timeout",
            "a_hook_that_fails_holds_its_cluster_until_an_update_changes_it",
            "a_hook_that_never_ends_fails_in_time_and_one_that_goes_ran_once",
        ],
    ),
    (
        "A chart keeps an object (`helm.sh/resource-policy: keep`), or a namespace holds something, and the deployment or logical cloud goes",
        &[
            "what_a_chart_keeps_stays_confined_and_is_named",
            "what_a_chart_keeps_is_named_at_the_end",
            "what_confines_stays_while_something_of_the_tenant_is_there",
        ],
    ),
    (
        "Somebody takes the label `emco.io/owner` off an object, and then it is to be removed",
        &[
            "an_object_that_lost_its_label_stays_and_is_counted_and_named",
            "objects_that_lost_their_label_are_named_once_nothing_else_is_left",
        ],
    ),
    (
        "Somebody deletes what was placed",
        &["what_people_change_and_delete_is_put_right_with_one_write_each_and_counted"],
    ),
    (
        "Somebody changes what was placed",
        &[
            "what_people_change_and_delete_is_put_right_with_one_write_each_and_counted",
            "where_changes_are_only_reported_the_object_and_its_writer_are_named_and_nothing_is_written",
            "who_keeps_changing_a_field_is_named_and_met_with_long_pauses",
            "who_sets_a_field_back_again_and_again_is_named_and_not_answered_at_once_any_more",
        ],
    ),
    (
        "A cluster goes back in time, restored from a backup of its own",
        &[
            "an_edge_restored_from_a_backup_is_brought_to_where_it_should_be_today",
            "an_edge_restored_from_a_backup_is_found_out_though_its_store_is_further_than_it_ever_was",
        ],
    ),
    (
        "The cluster's own admission rewrites what is placed",
        &[
            "what_the_edges_own_admission_rewrites_becomes_the_baseline_without_a_fight",
            "what_a_webhook_of_the_edge_rewrites_becomes_the_baseline_without_a_fight",
        ],
    ),
    (
        "A workload does not become ready",
        &[
            "a_workload_that_does_not_become_ready_is_counted_by_app_and_cluster_and_what_ran_stays",
            "a_pod_that_fits_no_node_is_named_then_fails_the_deployment",
            "a_hook_that_a_quota_keeps_from_running_is_named_with_the_quota",
            "what_stays_unready_fails_after_its_deadline_and_recovers",
        ],
    ),
    (
        "An app depends on another one that does not become ready",
        &["who_waits_longer_than_the_deadline_has_failed_with_the_cause"],
    ),
    (
        "An app depends on one of clusters that are away (`scope: All`)",
        &["scope_all_waits_for_another_cluster_and_skips_it_once_it_is_away"],
    ),
    (
        "A [health rule](health-rules.md) does not compile, takes too many steps, or answers text",
        &[
            "only_its_health_rule_says_when_a_custom_resource_is_ready",
            "a_rule_that_cannot_be_used_names_key_kind_field_and_fault",
            "a_rule_that_cannot_be_used_makes_nothing_ready",
        ],
    ),
    (
        "A cluster does not issue credentials of a logical cloud's `user`: it signs nothing, somebody denies it, or what it signs is somebody else's",
        &[
            "a_request_that_is_denied_is_told_and_holds_up_no_other_cluster",
            "a_cluster_that_signs_nothing_is_told_of_where_certificates_are_wanted",
            "a_cluster_that_signs_nothing_gives_a_token_and_is_not_asked_again",
            "what_is_signed_for_somebody_else_is_refused",
            "a_certificate_that_a_signer_made_for_somebody_else_is_not_kept",
            "a_right_that_is_missing_is_told_with_what_to_do",
            "a_cluster_that_is_away_gets_its_credential_when_it_answers",
            "a_cluster_without_a_signer_gives_a_token",
        ],
    ),
    (
        "The credentials may not list Pods or Events",
        &["a_cluster_that_forbids_pods_is_said_to_and_asked_seldom"],
    ),
];
