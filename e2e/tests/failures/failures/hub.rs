//! The rows of the chapter "On the hub", and the tests that show what they say.

use super::Row;

pub const HUB: &[Row] = &[
    (
        "The operator dies, at any moment",
        &["an_operator_killed_at_random_moments_ends_where_one_that_was_left_alone_ends"],
    ),
    (
        "The operator is busy for a long time",
        &[
            "a_lease_is_renewed_while_no_thread_of_the_work_is_free",
            "probes_are_answered_while_all_threads_of_the_work_are_busy",
            "work_that_is_silent_for_two_minutes_gives_up_a_lease_that_is_renewed",
            "a_read_is_repeated_where_this_process_had_no_time_to_look",
        ],
    ),
    (
        "Somebody crowds the operator's ports",
        &[
            "crowds_at_the_port_of_metrics_delay_no_probe_and_no_scrape",
            "the_operator_works_with_exactly_the_rights_of_its_chart/only_prometheus_is_let_in",
        ],
    ),
    (
        "`kubectl emco uninstall --release` is told another namespace than the operator's, or there is no Lease in it",
        &[
            "a_namespace_without_a_lease_is_no_operator_that_stopped",
            "a_lease_elsewhere_is_named_whether_it_is_renewed_or_not",
            "without_any_lease_objects_of_emco_are_not_released",
        ],
    ),
    (
        "EMCO is taken away while a cluster starts, or does not show all of its kinds",
        &[
            "a_namespace_is_not_judged_while_a_defined_kind_is_not_served",
            "a_namespace_is_not_judged_while_the_cluster_starts",
            "an_object_of_a_version_that_is_not_preferred_is_anothers",
            "an_api_whose_server_is_down_is_named_as_unserved",
            "a_404_that_names_no_object_is_no_absence",
        ],
    ),
    (
        "One project rolls out on thousands of clusters",
        &[
            "a_rollout_on_100_shards_does_not_delay_another_owners_hook",
            "many_deployments_of_a_project_have_one_projects_share",
        ],
    ),
    (
        "The hub's API server is down",
        &[
            "an_outage_shorter_than_the_lease_is_survived",
            "a_hub_that_does_not_answer_closes_the_fence_before_the_lease_ends",
            "a_404_that_does_not_name_the_lease_does_not_end_its_holder",
        ],
    ),
    (
        "The operator cannot work off an object, again and again: the hub refuses a read or write, a webhook of the hub fails, something cannot be stored",
        &["a_reconcile_that_fails_again_and_again_is_told_until_it_works"],
    ),
    (
        "The clock of the hub jumps",
        &[
            "a_wall_clock_that_jumps_by_hours_neither_loses_nor_takes_the_lease",
            "a_clock_that_is_set_by_an_hour_gives_nothing_up_and_spares_nothing",
            "a_machine_that_starts_with_a_wrong_clock_gives_nothing_up",
        ],
    ),
    (
        "A tenant's namespace is deleted",
        &["a_project_whose_namespace_is_deleted_while_an_edge_is_away_ends_with_clean_edges_when_it_is_back"],
    ),
    (
        "A Cluster that is in use is deleted (`kubectl delete ecl`)",
        &["a_cluster_in_use_that_is_deleted_says_what_it_waits_for"],
    ),
    ("A Cluster that never answered is deleted", &["a_cluster_that_never_answered_leaves_no_ledger"]),
    (
        "A provider's namespace is deleted",
        &["a_providers_namespace_that_is_deleted_takes_no_new_work_and_stays_until_its_last_user_is_gone"],
    ),
    (
        "Something in use is deleted",
        &[
            "what_is_in_use_stays_with_its_holders_named_and_goes_when_they_are_gone",
            "a_project_whose_deployments_do_not_show_yet_keeps_its_namespace",
            "a_provider_whose_clusters_do_not_show_yet_keeps_its_namespace",
            "what_a_deployment_that_does_not_show_yet_names_is_kept",
            "a_cloud_stays_where_a_deployment_that_does_not_show_yet_was_targeted",
        ],
    ),
    (
        "A deployment is deleted right after it was made",
        &[
            "a_deployment_deleted_before_its_shards_show_ends_on_clusters_first",
            "a_deployment_deleted_before_others_saw_its_shards_waits_for_them",
        ],
    ),
    (
        "A deployment is missing that nobody saw end (its finalizer was removed by hand, a backup had none of it)",
        &[
            "a_deployment_that_is_merely_missing_keeps_everything_and_goes_on_when_it_is_there_again",
            "what_others_change_stays_while_the_deployment_is_missing",
            "what_others_change_is_reported_while_the_deployment_is_missing",
        ],
    ),
    (
        "The operator dies while a cluster issues credentials of a `user`, or somebody removes the Secret with them",
        &[
            "a_process_that_dies_before_it_stores_has_another_credential_issued",
            "a_request_of_a_process_that_died_is_made_again_with_another_key",
            "a_secret_that_somebody_removes_is_made_again",
            "a_secret_that_changes_while_a_reconcile_is_at_work_is_read_again",
        ],
    ),
    (
        "The operator dies while it renews the token of a cluster",
        &[
            "a_process_that_dies_before_it_stores_the_token_has_another_one_issued",
            "a_write_whose_answer_is_lost_is_not_made_twice",
        ],
    ),
    (
        "A stored manifest pack is lost",
        &[
            "a_lost_pack_stops_pruning_and_is_noticed_by_a_process_that_had_read_it",
            "a_confirmed_loss_confirms_nothing_for_a_deployment_made_again",
            "a_confirmed_loss_holds_for_clusters_that_were_away_then",
            "a_pack_with_another_content_is_made_anew_from_the_plan",
            "what_is_wanted_is_applied_while_what_was_there_before_cannot_be_read_and_nothing_is_removed",
            "stored_manifests_that_are_deleted_or_damaged_come_back_and_nothing_is_removed_for_them",
        ],
    ),
    (
        "The hub is restored from a backup",
        &[
            "a_hub_restored_from_a_backup_touches_no_edge_that_knows_more_until_that_is_confirmed",
            "a_restored_hub_that_comes_as_far_again_waits_on_until_that_is_confirmed",
            "a_hub_whose_etcd_is_an_hour_old_goes_on_from_what_is_applied_again",
        ],
    ),
    (
        "The hub's objects are copied to an empty hub",
        &[
            "a_hub_made_of_copied_objects_goes_on_where_it_was",
            "a_hub_made_of_copies_without_statuses_deals_with_others_changes",
            "every_edit_after_a_restore_of_copies_reaches_the_clusters",
            "an_update_after_a_restore_of_copies_removes_what_it_has_no_more",
            "hooks_before_an_installation_do_not_run_again_when_statuses_are_lost",
            "a_hook_that_nothing_proves_to_have_run_runs_when_statuses_are_lost",
            "an_earlier_revision_that_is_there_is_upgraded_when_statuses_are_lost",
            "the_shards_of_an_owner_that_was_made_again_follow_its_uid",
            "whatever_is_on_a_cluster_is_in_its_row_and_in_the_end_it_is_the_target",
        ],
    ),
];
