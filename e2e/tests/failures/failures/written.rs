//! The rows of the chapter "What you write", and the tests that show what they say.

use super::Row;

pub const WRITTEN: &[Row] = &[
    (
        "A change of what runs is refused, whatever the reason: of a deployment, or of a logical cloud",
        &[
            "a_refused_change_of_what_runs_is_nowhere_taken_for_success",
            "each_refused_change_is_told_once_whatever_clusters_do",
            "a_refused_logical_cloud_says_what_runs_and_warns_once",
        ],
    ),
    (
        "A change is refused in the middle of a rollout, or while a cluster is new or replaced",
        &[
            "a_rollout_in_the_middle_goes_on_beside_a_refused_change",
            "a_gate_is_opened_beside_a_refused_change",
            "a_rollback_happens_beside_a_refused_change",
            "a_new_row_gets_its_identity_beside_a_refused_change",
            "a_confirmed_replacement_gets_what_runs_beside_a_refused_change",
            "a_new_cluster_stays_counted_beside_a_refused_change",
            "a_row_without_identity_gets_nothing_and_says_what_it_waits_for",
            "a_wave_passes_over_clusters_that_are_granted_no_more",
            "a_replacement_that_is_granted_no_more_gets_nothing",
            "a_drained_cluster_gets_no_identity_beside_a_refused_change",
            "no_wave_begins_where_the_refused_change_wants_none",
            "nothing_goes_on_in_a_logical_cloud_that_ends",
            "what_was_terminated_does_not_come_back_by_a_refused_change",
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
    ("The chart of a deployment cannot be had", &["charts_that_cannot_be_had_are_a_warning"]),
    ("Apps wait for each other in a circle", &["a_cycle_of_three_stalls_the_app_and_its_deployments"]),
    ("The chart does not render", &["an_error_in_a_template_names_the_file_of_the_chart_and_the_line"]),
    ("A value is misspelt, and nothing reads it", &["a_misspelt_value_is_named_and_refuses_nothing"]),
    ("A chart renders no object", &["a_chart_that_renders_nothing_is_named_with_the_value_that_turns_it_on"]),
    (
        "One app makes more than 5,000 objects, or more than its Project's `limits.objectsPerApp`",
        &[
            "many_objects_are_deployed_and_removed_and_too_many_are_refused",
            "over_five_thousand_objects_in_an_app_are_refused_and_what_runs_stays",
            "limits_of_a_project_are_kept_and_what_runs_stays",
        ],
    ),
    (
        "One object is larger than what an API server stores",
        &[
            "an_object_that_no_pack_can_hold_alone_is_deployed_and_read_again",
            "a_manifest_larger_than_a_pack_stands_in_pieces",
            "an_object_that_no_api_server_stores_is_refused_by_name_and_limit",
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
    ("No cluster matches", &["a_placement_that_matches_nothing_is_refused_and_what_runs_stays"]),
    (
        "A deployment is suspended in the middle of a change",
        &[
            "an_update_that_is_suspended_halfway_stops_at_the_next_write",
            "a_deployment_suspended_in_the_middle_of_an_update_goes_on_when_resumed",
            "a_removal_waits_while_its_owner_is_suspended",
            "drift_and_edits_of_a_suspended_deployment_wait_until_it_is_resumed",
            "drift_and_edits_of_a_suspended_project_wait_until_it_is_resumed",
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
        "A wave of a rollout waits for an approval, or is rejected",
        &[
            "a_gate_after_a_wave_holds_the_rest_until_it_is_approved",
            "a_gate_that_nobody_opens_is_waited_for_and_costs_nothing",
            "a_rejection_pauses_and_its_deletion_goes_on",
            "an_update_goes_to_one_cluster_and_on_when_its_gate_is_approved",
            "a_death_at_any_write_before_a_gate_changes_nothing_in_the_end",
            "a_wave_begins_when_a_person_or_a_controllers_account_approves_it",
            "a_wave_is_awaited_rejected_and_approved_by_commands",
        ],
    ),
    (
        "More clusters fail in a rollout than `maxFailures` bears",
        &[
            "a_canary_that_dies_pauses_when_its_time_is_over",
            "one_dead_cluster_pauses_where_none_is_borne_until_it_is_back",
            "what_is_taken_back_is_not_tried_again",
            "a_death_at_any_write_while_it_is_taken_back_changes_nothing",
            "a_second_rollback_goes_to_the_good_revision_too",
            "a_rollback_passes_over_what_was_applied_and_never_ready",
            "after_a_rollback_that_worked_the_deployment_is_ready",
            "a_death_at_any_write_of_a_way_back_changes_nothing",
            "a_rollback_takes_nothing_off_a_cluster_that_came_between",
            "what_was_taken_back_stays_so_when_statuses_are_lost",
            "a_rollout_that_pauses_for_a_dead_cluster_goes_on_and_reaches_it",
            "eight_clusters_of_which_some_die_and_one_joins_all_get_the_revision",
        ],
    ),
    (
        "A rollback would take an app off more clusters than the project's `removalBudget` allows, or no good revision is stored",
        &[
            "a_way_back_that_removes_too_much_waits_for_a_person",
            "the_first_revision_that_fails_has_no_way_back",
        ],
    ),
    (
        "A cluster comes or goes, or a newer revision comes, in the middle of a rollout",
        &[
            "a_cluster_that_comes_meanwhile_joins_the_last_wave",
            "a_newer_revision_begins_again_at_the_first_wave",
            "eight_clusters_of_which_some_die_and_one_joins_all_get_the_revision",
        ],
    ),
    (
        "What a plan that waits would change cannot be written down: a quota, an object of the same name",
        &[
            "a_plan_that_cannot_be_written_down_waits_and_is_carried_out",
            "names_of_a_plan_are_written_down_where_its_lines_are_refused",
            "an_object_of_somebody_else_by_that_name_stays_as_it_is",
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
            "revisions_beyond_the_limit_are_gone_and_no_pin_brings_them_back",
        ],
    ),
    (
        "A permission of a logical cloud names an API group that no cluster has",
        &["a_permission_on_an_unknown_api_group_gives_nothing_and_the_cluster_says_what_is_missing"],
    ),
    (
        "A quota of a logical cloud is in a wrong unit",
        &[
            "a_permission_on_an_unknown_api_group_gives_nothing_and_the_cluster_says_what_is_missing/a_quota_in_a_wrong_unit",
        ],
    ),
    (
        "A logical cloud with rights or limits of its own names a namespace that is there already",
        &[
            "clusters_levels_and_namespaces_of_others_are_refused_to_a_logical_cloud/a_namespace_that_was_there_gives_no_rights",
            "pods_beyond_the_standard_are_refused_by_the_clusters",
            "a_deployment_says_what_is_in_the_way_of_its_logical_cloud",
        ],
    ),
    (
        "A logical cloud names a cluster that its provider does not have",
        &[
            "a_cloud_without_any_cluster_says_what_to_do",
            "clusters_levels_and_namespaces_of_others_are_refused_to_a_logical_cloud",
        ],
    ),
    (
        "A grant is withdrawn while it is in use",
        &[
            "a_grant_that_is_withdrawn_keeps_what_runs_and_refuses_what_is_new",
            "a_pin_holds_against_labels_and_not_against_grants",
        ],
    ),
    (
        "An action of an intent cannot be carried out: its target is missing, its patch fails, another intent contradicts it",
        &[
            "an_action_that_cannot_be_carried_out_refuses_the_change_and_what_runs_stays",
            "two_intents_that_contradict_each_other_are_a_named_conflict",
        ],
    ),
    (
        "An intent that a deployment lists is missing, or of a kind that nobody carries out",
        &[
            "a_listed_intent_of_an_unknown_kind_refuses_the_change_and_what_runs_stays",
            "a_refused_change_of_what_runs_is_nowhere_taken_for_success",
            "an_intent_is_waited_for_and_one_of_another_project_is_not_it",
        ],
    ),
    ("A field is not supported yet", &["a_field_of_a_later_version_is_answered_instead_of_ignored"]),
];
