//! The rows of the page of failures, by their first column, and the tests that show what the row says.

/// First column, names of tests.
pub const SHOWN_BY: &[(&str, &[&str])] = &[
    (
        "A cluster does not answer",
        &["a_cluster_that_cannot_be_reached_is_named_while_others_finish_and_gets_all_when_it_is_back"],
    ),
    (
        "Many clusters of one provider do not answer",
        &[
            "a_providers_silent_clusters_do_not_delay_another_providers",
            "one_share_never_has_all_places",
            "a_free_place_goes_to_the_share_with_the_fewest",
        ],
    ),
    (
        "A cluster never comes back",
        &[
            "a_dead_cluster_is_given_up_after_its_time_and_cleaned_when_it_returns",
            "a_person_gives_up_by_typing_the_text_of_the_removal_and_nothing_else",
            "what_was_typed_for_one_removal_gives_up_nothing_in_the_next",
            "given_up_work_is_remembered_while_its_provider_does_not_show",
        ],
    ),
    (
        "It comes back after all",
        &[
            "a_dead_cluster_is_given_up_after_its_time_and_cleaned_when_it_returns",
            "another_cluster_under_the_same_name_is_not_cleaned",
            "a_scan_waits_for_kinds_that_are_defined_and_not_served",
            "a_scan_finds_what_is_left_of_a_kind_that_cannot_be_watched",
        ],
    ),
    (
        "Its API server starts, and does not show all of its kinds yet",
        &[
            "an_edge_that_starts_while_work_waits_loses_and_repeats_nothing",
            "a_server_that_is_not_ready_is_not_connected_before_it_is",
            "what_a_starting_server_does_not_show_yet_stays_known",
        ],
    ),
    (
        "A kind is not served while something of it is to be removed",
        &[
            "what_discovery_lacks_for_a_moment_is_removed_when_it_is_back",
            "a_kind_without_a_definition_has_no_objects",
            "a_kind_of_an_aggregated_api_that_is_down_is_waited_for",
        ],
    ),
    (
        "The credentials may not list a kind that is to be searched, or may not see definitions",
        &[
            "a_scan_names_the_kind_that_it_may_not_list_and_goes_on_with_the_right",
            "without_the_right_to_see_definitions_nothing_is_forgotten",
            "a_hook_that_may_not_be_listed_is_cleared_before_its_next_run",
            "a_hook_that_may_not_be_read_is_not_taken_for_cleared",
        ],
    ),
    (
        "A cluster answers slowly or hangs in the middle of a request",
        &[
            "a_black_hole_becomes_a_time_out",
            "a_black_hole_delays_no_other_cluster",
            "an_operator_killed_at_random_moments_ends_where_one_that_was_left_alone_ends",
        ],
    ),
    (
        "A cluster answers 404 for what every API server has (a proxy, a wrong path or port, a server that starts)",
        &["a_404_that_does_not_name_the_claim_is_no_free_cluster"],
    ),
    (
        "A cluster is overloaded (429, or 503 with Retry-After)",
        &[
            "an_overloaded_cluster_is_asked_again_when_it_said_and_delays_no_other",
            "an_overloaded_cluster_is_not_asked_for_the_other_thousand_objects_before_the_time_it_named",
        ],
    ),
    (
        "Its certificate expires",
        &["an_edge_whose_certificate_expires_is_named_and_goes_on_with_the_next_one"],
    ),
    ("Its credentials end", &["refused_credentials_are_named_and_new_ones_take_their_place"]),
    (
        "The credentials lack a right",
        &[
            "a_right_that_is_missing_is_told_with_the_object_and_the_rest_is_applied",
            "a_row_says_which_kind_may_not_be_watched_until_it_may",
        ],
    ),
    (
        "Watches of a cluster fail or deliver nothing (a proxy that buffers or cuts streams, more than 512 kinds)",
        &[
            "an_object_deleted_where_no_watch_works_is_made_again",
            "a_workload_that_fails_where_no_watch_works_is_not_ready",
            "watches_that_end_at_once_are_asked_for_with_growing_pauses",
            "watches_beyond_the_limit_of_an_edge_are_refused_at_once",
            "an_object_of_each_of_seventy_kinds_is_made_again_at_once",
        ],
    ),
    (
        "Another cluster answers behind the name",
        &["an_edge_made_anew_gets_nothing_until_somebody_confirms_it_and_then_everything"],
    ),
    (
        "The cluster is registered twice",
        &["an_edge_registered_twice_is_refused_and_the_first_registration_named"],
    ),
    (
        "A Cluster vanishes without its end, and is registered again",
        &["a_cluster_that_was_this_hubs_before_is_searched_once_when_it_is_registered_again"],
    ),
    (
        "Another hub works on the cluster",
        &[
            "an_edge_says_whose_it_is_and_another_hubs_edge_is_left_alone_until_it_is_moved",
            "a_confirmed_move_does_not_take_back_what_another_hub_took_since",
        ],
    ),
    ("A manifest is refused", &["a_refused_manifest_is_failed_with_the_servers_words_and_never_applied"]),
    (
        "A kind is not there yet",
        &[
            "a_custom_resource_waits_for_its_kind_and_the_rest_does_not",
            "an_object_whose_kind_comes_late_is_made_once_and_kept",
        ],
    ),
    (
        "A change touches a field that cannot be changed",
        &[
            "a_field_that_cannot_be_changed_fails_and_names_recreate",
            "what_cannot_be_changed_is_made_again_and_volumes_stay",
            "a_volume_claim_is_never_deleted_and_says_why",
        ],
    ),
    (
        "The object is somebody else's",
        &[
            "a_foreign_object_is_named_with_its_manager_and_nothing_is_sent",
            "what_people_made_alike_is_taken_over_and_left_in_the_end",
            "what_differs_is_listed_then_held_by_its_manager_then_forced",
        ],
    ),
    (
        "An old object does not go, with `spec.sync.prune: Before`",
        &[
            "nothing_new_comes_before_what_must_go_first_is_gone",
            "an_object_that_does_not_go_is_named_with_its_finalizer",
        ],
    ),
    ("A hook fails", &["a_hook_that_does_not_end_holds_the_rest_and_fails_by_its_timeout"]),
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
        "A Cluster that is in use is deleted (`kubectl delete ecl`)",
        &["a_cluster_in_use_that_is_deleted_says_what_it_waits_for"],
    ),
    ("A Cluster that never answered is deleted", &["a_cluster_that_never_answered_leaves_no_ledger"]),
    (
        "A workload does not become ready",
        &[
            "a_workload_that_does_not_become_ready_is_counted_by_app_and_cluster_and_what_ran_stays",
            "a_pod_that_fits_no_node_is_named_then_fails_the_deployment",
            "a_hook_that_a_quota_keeps_from_running_is_named_with_the_quota",
            "what_stays_unready_fails_after_its_deadline_and_recovers",
        ],
    ),
    ("A value is misspelt, and nothing reads it", &["a_misspelt_value_is_named_and_refuses_nothing"]),
    ("A chart renders no object", &["a_chart_that_renders_nothing_is_named_with_the_value_that_turns_it_on"]),
    (
        "The credentials may not list Pods or Events",
        &["a_cluster_that_forbids_pods_is_said_to_and_asked_seldom"],
    ),
    (
        "A change of what runs is refused, whatever the reason: of a deployment, or of a logical cloud",
        &[
            "a_refused_change_of_what_runs_is_nowhere_taken_for_success",
            "each_refused_change_is_told_once_whatever_clusters_do",
            "a_refused_logical_cloud_says_what_runs_and_warns_once",
        ],
    ),
    ("The chart of a deployment cannot be had", &["charts_that_cannot_be_had_are_a_warning"]),
    (
        "An admission webhook of a cluster fails (500), or its API server answers with another error",
        &["a_failing_webhook_is_an_error_of_the_server_with_its_words"],
    ),
    (
        "A manifest names a namespace that is not there",
        &[
            "a_namespace_that_nobody_makes_fails_at_once_with_its_cure",
            "a_namespace_that_another_app_of_the_target_makes_is_waited_for",
        ],
    ),
    (
        "Something that is referred to is missing",
        &["what_a_deployment_refers_to_is_named_while_it_is_missing_and_its_arrival_is_noticed"],
    ),
    (
        "The chart's source is down",
        &[
            "a_repository_that_was_down_is_asked_again_without_anybody_doing_anything",
            "a_new_pod_goes_on_with_kept_charts_while_their_source_is_down",
            "a_namespace_keeps_as_much_as_it_may_and_delays_no_other",
        ],
    ),
    (
        "The source serves other bytes under the same version",
        &["other_bytes_under_the_same_version_are_refused_and_what_runs_stays"],
    ),
    ("The chart does not render", &["an_error_in_a_template_names_the_file_of_the_chart_and_the_line"]),
    (
        "One app makes more than 5,000 objects, or more than its Project's `limits.objectsPerApp`",
        &[
            "five_thousand_objects_in_one_app_are_deployed_and_removed_and_one_more_is_refused",
            "an_app_of_five_thousand_objects_is_deployed_and_one_object_more_is_refused",
            "limits_of_a_project_are_kept_and_what_runs_stays",
        ],
    ),
    ("No cluster matches", &["a_placement_that_matches_nothing_is_refused_and_what_runs_stays"]),
    (
        "A deployment is suspended in the middle of a change",
        &[
            "an_update_that_is_suspended_halfway_stops_at_the_next_write",
            "a_deployment_suspended_in_the_middle_of_an_update_goes_on_when_resumed",
            "a_removal_waits_while_its_owner_is_suspended",
            "drift_and_edits_of_a_suspended_deployment_wait_until_it_is_resumed",
        ],
    ),
    (
        "A plan waits for an approval, is rejected, or would take an app off too many clusters",
        &[
            "an_edit_waits_beside_what_runs_and_survives_a_restart",
            "any_rejection_of_a_digest_wins_until_it_is_deleted",
            "a_removal_beyond_the_budget_waits_in_automatic_projects_too",
            "a_plan_is_carried_out_once_approved_and_refused_once_rejected",
            "a_plan_beyond_the_removal_budget_waits_for_its_own_approval",
            "a_plan_rejected_at_any_write_of_its_refusal_is_never_carried_out",
        ],
    ),
    (
        "A deployment is deleted whose project wants deletions confirmed",
        &[
            "a_deletion_waits_for_its_confirmation_where_the_project_wants_one",
            "a_deletion_removes_nothing_until_its_command_confirms_it",
        ],
    ),
    (
        "A revision is pinned that cannot be had",
        &[
            "a_revision_that_cannot_be_had_is_refused_and_what_runs_stays",
            "a_pinned_revision_whose_pack_is_lost_is_refused_until_it_is_back",
        ],
    ),
    ("A field is not supported yet", &["a_field_of_a_later_version_is_answered_instead_of_ignored"]),
    (
        "The operator dies, at any moment",
        &["an_operator_killed_at_random_moments_ends_where_one_that_was_left_alone_ends"],
    ),
    (
        "The operator is busy for a long time",
        &[
            "a_lease_is_renewed_for_a_minute_while_no_thread_of_the_work_is_free",
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
        "A project has more deployments than its `limits.deploymentIntentGroups`",
        &[
            "limits_of_a_project_are_kept_and_what_runs_stays",
            "the_oldest_deployments_come_first_in_whatever_order_they_are_seen",
            "deployments_that_run_stay_and_may_change_below_a_lower_limit",
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
            "a_hub_made_of_copied_objects_without_statuses_goes_on_where_it_was",
            "every_edit_after_a_restore_of_copies_reaches_the_clusters",
            "an_update_after_a_restore_of_copies_removes_what_it_has_no_more",
            "hooks_before_an_installation_do_not_run_again_when_statuses_are_lost",
            "a_hook_that_nothing_proves_to_have_run_runs_when_statuses_are_lost",
            "an_earlier_revision_that_is_there_is_upgraded_when_statuses_are_lost",
            "the_shards_of_an_owner_that_was_made_again_follow_its_uid",
            "whatever_is_on_a_cluster_is_in_its_row_and_in_the_end_it_is_the_target",
        ],
    ),
    (
        "A deployment is deleted right after it was made",
        &[
            "a_deployment_deleted_before_its_shards_show_ends_on_clusters_first",
            "a_deployment_deleted_before_others_saw_its_shards_waits_for_them",
        ],
    ),
];
