//! The rows of the chapter "On the way to a cluster", and the tests that show what they say.

use super::Row;

pub const WAY: &[Row] = &[
    (
        "A cluster does not answer",
        &[
            "a_cluster_that_cannot_be_reached_is_named_while_others_finish_and_gets_all_when_it_is_back",
            "half_of_a_fleet_that_stands_still_holds_up_no_other_cluster",
        ],
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
        "An admission webhook of a cluster fails (500), or its API server answers with another error",
        &["a_failing_webhook_is_an_error_of_the_server_with_its_words"],
    ),
    (
        "Its certificate expires",
        &["an_edge_whose_certificate_expires_is_named_and_goes_on_with_the_next_one"],
    ),
    (
        "The authority of its certificate changes (a rotation)",
        &[
            "an_edge_whose_certificate_expires_is_named_and_goes_on_with_the_next_one/rotate_authority",
            "another_ca_is_named_as_the_cause",
        ],
    ),
    (
        "Its credentials end",
        &[
            "refused_credentials_are_named_and_new_ones_take_their_place",
            "credentials_that_ended_stop_work_and_fresh_ones_bring_what_waited",
        ],
    ),
    (
        "Its token is to be renewed, and the cluster is away or refuses",
        &[
            "a_cluster_that_refuses_is_asked_seldom_and_the_cure_is_said",
            "a_cluster_that_is_away_is_told_of_and_renews_when_it_is_back",
            "a_token_that_is_due_is_renewed_without_interruption",
        ],
    ),
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
        &[
            "an_edge_made_anew_gets_nothing_until_somebody_confirms_it_and_then_everything",
            "a_replaced_cluster_counts_as_having_nothing",
            "a_confirmed_replacement_gets_what_runs_beside_a_refused_change",
        ],
    ),
    (
        "The cluster is registered twice",
        &[
            "an_edge_registered_twice_is_refused_and_the_first_registration_named",
            "of_two_new_clusters_of_one_api_server_the_first_to_answer_is_admitted",
        ],
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
];
