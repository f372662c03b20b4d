//! Lists what a trial as a new user and as an administrator found, and the tests that show that it is not so any more.

/// Number, what was wrong, and names of tests.
pub const ALL: &[(u8, &str, &[&str])] = &[
    (
        1,
        "charts that look up the password they drew could not be changed",
        &[
            "passwords_that_a_chart_looks_up_stay_when_a_value_changes",
            "a_changed_value_arrives_and_the_passwords_stay",
            "objects_of_others_are_not_found",
        ],
    ),
    (
        2,
        "a refused change looked like success",
        &[
            "a_refused_change_of_what_runs_is_nowhere_taken_for_success",
            "a_change_refused_while_a_cluster_is_away_stays_refused",
        ],
    ),
    (
        3,
        "a workload that does not become ready was not named, did not fail and raised no alert",
        &[
            "each_kind_of_unready_object_is_named_with_its_own_reason",
            "a_pod_that_fits_no_node_is_named_then_fails_the_deployment",
            "a_hook_that_a_quota_keeps_from_running_is_named_with_the_quota",
            "every_alert_fires_when_it_should_and_not_otherwise",
        ],
    ),
    (4, "the log was silent", &["the_log_of_a_day_says_what_happened_and_nothing_twice"]),
    (
        5,
        "failures were Events of type Normal",
        &[
            "a_connection_that_fails_is_a_warning_whatever_the_reason",
            "charts_that_cannot_be_had_are_a_warning",
            "credentials_that_cannot_be_used_are_a_warning",
        ],
    ),
    (
        6,
        "what runs already could not be taken over",
        &[
            "a_helm_release_is_taken_over_in_place_and_forgotten_by_helm",
            "what_people_made_alike_is_taken_over_and_left_in_the_end",
            "what_differs_is_listed_then_held_by_its_manager_then_forced",
        ],
    ),
    (
        7,
        "a cluster that never answered left a record and an alert for ever",
        &["a_cluster_that_never_answered_leaves_no_ledger"],
    ),
    (
        8,
        "a chart's source that was down held up every change",
        &[
            "a_new_pod_goes_on_with_kept_charts_while_their_source_is_down",
            "a_chart_moves_to_another_cluster_without_its_source",
            "a_version_that_ran_is_taken_back_without_its_source",
        ],
    ),
    (
        9,
        "there was no image, no quick start and no way out, and the chart lacked values",
        &[
            "the_static_programs_need_no_loader_and_the_image_deploys",
            "the_page_on_kind_ends_with_pods_of_the_first_application",
            "a_released_installation_leaves_what_runs_and_nothing_of_its_own",
            "every_value_lands_at_its_place_in_the_deployment",
            "the_minimum_version_of_kubernetes_is_the_same_wherever_it_is_said",
        ],
    ),
    (
        10,
        "a cluster could be added and not removed",
        &["a_cluster_is_cordoned_drained_and_removed_with_all_that_adding_it_made"],
    ),
    (
        11,
        "the command lacked what people type",
        &[
            "get_lists_every_object_and_asks_where_something_is_wrong",
            "manifests_are_those_of_the_charts_and_secrets_are_withheld",
            "history_says_why_each_revision_was_made_and_what_it_changed",
            "explain_says_why_a_cluster_was_chosen_and_what_another_lacks",
            "reconcile_waits_until_the_operator_has_looked_and_says_how_it_stands",
            "suspend_resume_and_rollback_say_what_they_did_and_what_git_will_undo",
            "logs_and_exec_reach_the_pods_of_the_named_workload",
            "check_says_what_is_missing_where_nothing_is_installed",
            "the_tab_key_completes_names_in_bash_zsh_and_fish",
        ],
    ),
    (
        12,
        "the table of deployments had no reason and no message",
        &["one_line_tells_about_a_deployment", "a_refused_change_of_what_runs_is_nowhere_taken_for_success"],
    ),
    (
        13,
        "a deployment did not say what is wrong with its chart",
        &[
            "a_chart_that_is_not_there_or_no_chart_is_named_and_its_arrival_is_noticed",
            "a_source_that_is_down_stays_said_and_is_asked_again_by_itself",
        ],
    ),
    (
        14,
        "misspelt values and charts that render nothing passed as success",
        &[
            "a_misspelt_value_is_named_and_refuses_nothing",
            "a_chart_that_renders_nothing_is_named_with_the_value_that_turns_it_on",
        ],
    ),
    (
        15,
        "all apps share a release and a namespace: the book says so, and what collides is refused with both names",
        &["two_apps_that_make_the_same_object_are_refused_with_both_names"],
    ),
    (
        16,
        "no metric counted deployments by state",
        &[
            "every_expression_finds_series_of_a_running_operator",
            "every_alert_fires_when_it_should_and_not_otherwise",
            "every_alert_has_its_section_in_the_book",
        ],
    ),
    (
        17,
        "the schema promised what was refused",
        &[
            "every_field_that_comes_later_is_refused_and_named",
            "the_readme_lists_exactly_what_is_not_supported_yet",
        ],
    ),
];
