//! Lists what was wrong in the first EMCO, and the tests that show that it is not so here.

/// One defect.
pub struct Defect {
    /// Its number in its list.
    pub number: u8,
    /// What was wrong.
    pub was: &'static str,
    /// Names of tests.
    pub shown: &'static [&'static str],
}

const fn of(number: u8, was: &'static str, shown: &'static [&'static str]) -> Defect {
    Defect { number, was, shown }
}

/// Defects of parts that are not built yet: clusters that pull from Git, networks, certificates of applications, measured policies, actions.
pub const LATER: [u8; 5] = [13, 16, 21, 22, 23];

/// The others of the 25 that are known of deployment, status, clusters and logical clouds.
pub const ALL: &[Defect] = &[
    of(
        1,
        "a patch that failed was reported as applied",
        &[
            "a_claim_is_never_made_again_and_says_why",
            "a_field_that_cannot_be_changed_fails_and_names_recreate",
            "a_manifest_that_the_edge_refuses_is_reported_in_the_words_of_the_edge",
        ],
    ),
    of(
        2,
        "one cluster that failed ended the work on all",
        &["apps_on_one_cluster_and_clusters_do_not_fail_each_other"],
    ),
    of(
        3,
        "only what could not be reached was tried again, and every app asked every cluster every two seconds",
        &[
            "the_servers_word_is_honoured_and_refusals_are_retried_slowly",
            "pauses_grow_and_are_not_shorter_than_the_hub_asks_for",
            "at_rest_a_probe_is_one_request_and_nothing_is_told",
        ],
    ),
    of(
        4,
        "objects were deleted in the order of installation, and Terminated was said before they were gone",
        &[
            "apps_leave_in_reverse_and_the_next_when_the_last_is_gone",
            "a_404_that_does_not_name_the_object_is_no_proof_that_it_is_gone",
            "terminated_is_said_only_when_every_row_says_that_nothing_is_left",
        ],
    ),
    of(
        5,
        "an update deleted the old before the new was there",
        &["an_update_prunes_what_is_no_longer_wanted_after_the_rest_is_ready"],
    ),
    of(
        6,
        "a dependency was met by the start of an app, or never",
        &[
            "no_gate_opens_before_all_is_met_and_each_delay_is_over",
            "an_app_waits_until_the_other_one_is_ready_and_says_so",
            "deployed_is_enough_where_asked_for_and_a_new_app_touches_no_other",
            "a_delay_is_named_and_never_shorter_than_it_is_written",
        ],
    ),
    of(
        7,
        "a hook that failed counted as done, and a DaemonSet as a hook never was",
        &[
            "a_failed_hook_is_a_failure",
            "a_hook_that_fails_and_is_deleted_at_once_has_failed",
            "a_hook_that_fails_holds_its_cluster_until_an_update_changes_it",
            "a_daemon_set_is_ready_when_all_its_nodes_are",
        ],
    ),
    of(8, "terminating twice failed", &["what_is_terminated_stays_terminated"]),
    of(
        9,
        "the second edit of a logical cloud gave it another identity",
        &["a_permission_with_another_role_keeps_its_name_and_takes_no_other_away"],
    ),
    of(
        10,
        "a restart lost credentials under way, one slow cluster held up all, and none was renewed",
        &[
            "a_process_that_dies_before_it_stores_has_another_credential_issued",
            "a_request_that_is_denied_is_told_and_holds_up_no_other_cluster",
            "a_cluster_that_is_away_gets_its_credential_when_it_answers",
            "credentials_are_renewed_in_time_and_at_rest_nothing_is_written",
        ],
    ),
    of(
        11,
        "roles were numbered, so that one that was removed renamed the others, and no binding can change its role",
        &["a_permission_with_another_role_keeps_its_name_and_takes_no_other_away"],
    ),
    of(
        12,
        "one service account was made and another one bound",
        &[
            "deployments_are_written_as_the_account_of_their_cloud",
            "a_tenant_of_level_standard_may_do_what_its_account_may_only",
        ],
    ),
    of(
        14,
        "a cluster could leave a logical cloud under its deployments",
        &["a_cluster_that_left_the_cloud_keeps_the_namespace_while_a_group_is_there"],
    ),
    of(
        15,
        "a deployment that never ran kept a logical cloud for ever, and one that began could not be ended",
        &[
            "everything_deleted_in_any_order_leaves_clean_edges_also_those_that_were_away",
            "a_deployment_deleted_before_its_shards_show_ends_on_clusters_first",
        ],
    ),
    of(
        17,
        "objects of other namespaces and of the whole cluster were not seen",
        &["objects_of_other_namespaces_and_of_the_cluster_are_in_the_status"],
    ),
    of(
        18,
        "a status outgrew its object",
        &[
            "a_status_has_all_counts_and_the_first_names",
            "ten_thousand_clusters_and_ten_apps_fit_into_few_hundred_kib",
        ],
    ),
    of(
        19,
        "what had no object was ready, and what was on a dead cluster stayed so",
        &[
            "an_owner_that_is_nowhere_is_not_ready",
            "a_dead_cluster_is_never_counted_ready_and_what_it_has_is_unknown",
        ],
    ),
    of(20, "tokens stood in the log", &["no_secret_of_the_hub_stands_in_anything_that_people_read"]),
    of(
        24,
        "credentials of clusters were neither checked nor replaced, and a registration that failed left half of it",
        &[
            "kubeconfigs_that_cannot_or_must_not_be_used_are_refused_with_the_cure",
            "credentials_are_replaced_without_interruption_and_the_old_ones_end",
            "what_cannot_be_added_is_refused_with_a_sentence_and_nothing_is_made",
        ],
    ),
    of(
        25,
        "the command succeeded whatever happened, and waited for nothing",
        &[
            "status_is_a_tree_with_filters_codes_and_a_watch",
            "wait_ends_when_a_deployment_is_as_asked_for_or_the_time_is_over",
        ],
    ),
];

/// Those of the list of intents that are about the life of a deployment, and about actions. The others are of intents that are not built
/// yet.
pub const OF_INTENTS: &[Defect] = &[
    of(
        1,
        "a denied cluster was never matched, its provider was not compared, and a resource without a change was not added",
        &[
            "a_denied_cluster_gets_nothing_and_all_others_do",
            "a_resource_without_any_change_is_added_on_every_cluster_of_the_app",
            "provider_and_name_of_a_cluster_in_an_action_are_compared_together",
        ],
    ),
    of(
        9,
        "intents of one priority came in any order, and the last one won",
        &[
            "actions_are_carried_out_in_the_order_in_which_they_are_listed",
            "two_intents_that_contradict_each_other_are_a_named_conflict",
        ],
    ),
    of(
        10,
        "state was stored after the work, a rollback was not checked, revisions began anew, and Terminated was said too early",
        &[
            "a_death_at_any_write_of_an_installation_changes_nothing_in_the_end",
            "a_death_at_any_write_of_a_pin_changes_nothing_in_the_end",
            "a_revision_that_cannot_be_had_is_refused_and_what_runs_stays",
            "the_number_of_a_revision_is_never_used_again",
            "another_composite_app_keeps_what_both_have_and_a_pin_goes_back",
            "terminated_is_said_only_when_every_row_says_that_nothing_is_left",
        ],
    ),
    of(
        11,
        "definitions were deleted with all their objects, removal had the order of installation, delete policies of hooks were ignored, \
         and Deployed was said early",
        &[
            "a_definition_is_released_with_its_app_and_never_deleted",
            "apps_leave_in_reverse_and_the_next_when_the_last_is_gone",
            "a_namespace_goes_last_and_only_when_nothing_of_others_is_in_it",
            "hooks_run_before_and_after_the_rest_and_each_life_has_its_own",
            "hooks_run_by_event_and_weight_as_each_cluster_needs_them",
            "a_change_counts_as_deployed_only_where_it_could_be_worked_out",
        ],
    ),
    of(
        12,
        "what could not be parsed or was not there was passed over in silence",
        &[
            "a_patch_whose_target_is_missing_is_refused_unless_it_may_be",
            "a_resource_of_a_secret_is_a_secret_and_is_never_quoted",
            "what_is_wrong_with_an_action_is_said_with_intent_and_field",
        ],
    ),
    of(
        13,
        "Secrets stood in intents, what a patch named was fetched from anywhere and without a time limit, and an archive could write anywhere",
        &[
            "a_secret_that_an_intent_reads_is_waited_for_followed_and_never_shown",
            "a_resource_of_a_secret_is_a_secret_and_is_never_quoted",
            "an_address_in_a_patch_is_a_text_and_nothing_is_fetched",
            "redirects_are_judged_anew_and_credentials_stay_at_home",
            "a_body_of_a_byte_a_second_is_given_up_after_ten_seconds",
            "paths_that_leave_the_chart_are_refused",
        ],
    ),
    of(
        14,
        "each cluster had a full copy of the manifests, and bytes were compared",
        &[
            "equal_clusters_share_one_set_and_different_ones_do_not",
            "a_revision_of_a_thousand_clusters_is_at_most_twenty_objects_and_five_mebibytes",
            "what_is_unchanged_costs_no_request_in_an_update",
            "what_the_edges_own_admission_rewrites_becomes_the_baseline_without_a_fight",
        ],
    ),
    of(
        15,
        "a deployment could not be edited once it was approved",
        &["an_edit_waits_beside_what_runs_and_survives_a_restart"],
    ),
];
