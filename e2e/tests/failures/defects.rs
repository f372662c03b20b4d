//! What a hostile reading of the operator found, by its number, and the row and the tests that show that it is cured.

/// One finding.
pub struct Defect {
    /// As the finding is numbered.
    pub number: &'static str,
    /// What was wrong.
    pub was: &'static str,
    /// Rows of the pages of failures and of security, and tests of theirs.
    pub shown: &'static [(&'static str, &'static [&'static str])],
}

const fn of(
    number: &'static str,
    was: &'static str,
    shown: &'static [(&'static str, &'static [&'static str])],
) -> Defect {
    Defect { number, was, shown }
}

const COPIED: &str = "The hub's objects are copied to an empty hub";
const MISSING: &str = "A deployment is missing that nobody saw end (its finalizer was removed by hand, a backup had none of it)";
const CHART: &str = "a chart that is huge, nests for ever, or never ends";
const SERVERS: &str = "servers of charts that answer slowly, and many apps that want charts of them";
const WATCHES: &str = "Watches of a cluster fail or deliver nothing (a proxy that buffers or cuts streams, more than 512 kinds)";
const CONNECTIONS: &str = "connections that it holds open, slow or without end";
const SECRETS: &str = "secrets in them";
const ANSWERS: &str = "answers that are endless, wrong or hostile";
const DURING_REMOVAL: &str = "A kind is not served while something of it is to be removed";

/// All findings: on clusters and inventory, of tenants against each other, of honest statuses, of the lease, of pages that claimed
/// too much.
pub const ALL: &[Defect] = &[
    of(
        "A1",
        "generations that were kept across a restore",
        &[(
            COPIED,
            &[
                "a_hub_made_of_copied_objects_goes_on_where_it_was",
                "a_hub_made_of_copies_without_statuses_deals_with_others_changes",
                "every_edit_after_a_restore_of_copies_reaches_the_clusters",
                // The law of shards, whose steps copy them at every moment: also while a cluster is in the middle of its work.
                "whatever_is_on_a_cluster_is_in_its_row_and_in_the_end_it_is_the_target",
            ],
        )],
    ),
    of(
        "A2",
        "a wanted object of the whole cluster was deleted when its kind came late",
        &[("A kind is not there yet", &["an_object_whose_kind_comes_late_is_made_once_and_kept"])],
    ),
    of(
        "A3",
        "a kind that a starting server does not show counted as empty",
        &[
            (DURING_REMOVAL, &["what_discovery_lacks_for_a_moment_is_removed_when_it_is_back"]),
            (
                "Its API server starts, and does not show all of its kinds yet",
                &["an_edge_that_starts_while_work_waits_loses_and_repeats_nothing"],
            ),
            (
                "EMCO is taken away while a cluster starts, or does not show all of its kinds",
                &["a_namespace_is_not_judged_while_a_defined_kind_is_not_served"],
            ),
        ],
    ),
    of(
        "A4",
        "a deployment was gone before the watch showed its shards",
        &[(
            "A deployment is deleted right after it was made",
            &["a_deployment_deleted_before_its_shards_show_ends_on_clusters_first"],
        )],
    ),
    of(
        "A5",
        "a kind that may not be listed counted as empty",
        &[(
            "The credentials may not list a kind that is to be searched, or may not see definitions",
            &["a_scan_names_the_kind_that_it_may_not_list_and_goes_on_with_the_right"],
        )],
    ),
    of(
        "A6",
        "shards kept the uid of an owner that was made again",
        &[
            (COPIED, &["the_shards_of_an_owner_that_was_made_again_follow_its_uid"]),
            (MISSING, &["what_others_change_stays_while_the_deployment_is_missing"]),
        ],
    ),
    of(
        "A7",
        "a confirmed claim was taken again for ever",
        &[(
            "Another hub works on the cluster",
            &["a_confirmed_move_does_not_take_back_what_another_hub_took_since"],
        )],
    ),
    of(
        "B1",
        "memory was bounded for a rendering and not for the process",
        &[(
            CHART,
            &[
                "charts_that_allocate_are_refused_within_the_memory_of_one_render",
                "a_project_that_renders_all_it_may_leaves_a_turn_for_another",
                "a_project_waits_for_one_rendering_of_each_other_project",
            ],
        )],
    ),
    of(
        "B2",
        "charts in memory counted packed",
        &[(CHART, &["charts_in_memory_count_with_all_that_they_unpack_to"])],
    ),
    of(
        "B3",
        "names were put into addresses as they were",
        &[(
            "a name such as `?watch=true` or `../../acme/secrets/kc` that would lead a request elsewhere",
            &["a_name_that_begins_a_query_is_refused_when_it_is_applied"],
        )],
    ),
    of(
        "B4",
        "a server's words about a Secret were quoted",
        &[(SECRETS, &["a_number_in_a_secret_is_refused_before_any_server_sees_it"])],
    ),
    of(
        "B5",
        "one slow server held the places for downloads of all",
        &[(
            SERVERS,
            &[
                "slow_servers_of_one_project_leave_places_to_others",
                "archives_of_one_project_leave_a_place_to_unpack_to_others",
            ],
        )],
    ),
    of(
        "B6",
        "a plan had no bound and could not be stopped",
        &[(
            CHART,
            &[
                "a_plan_that_takes_too_long_is_refused_and_what_runs_stays",
                "two_projects_with_long_plans_leave_turns_to_others",
            ],
        )],
    ),
    of(
        "B7",
        "64 connections ended the operator",
        &[(CONNECTIONS, &["crowds_at_the_port_of_metrics_delay_no_probe_and_no_scrape"])],
    ),
    of(
        "B8",
        "one rollout delayed the hooks and statuses of all",
        &[(
            "many deployments, large rollouts, objects that a cluster takes long to admit",
            &["a_rollout_on_100_shards_does_not_delay_another_owners_hook"],
        )],
    ),
    of(
        "B9",
        "a Git server could burn the processors",
        &[(CHART, &["chains_in_reverse_order_are_resolved_link_by_link"])],
    ),
    of(
        "B10",
        "a hostile edge made a loop without a pause",
        &[(ANSWERS, &["watches_that_end_at_once_are_asked_for_with_growing_pauses"])],
    ),
    of(
        "B11",
        "rights were wider than needed",
        &[(
            "the operator's rights, by its token, or the labels that say whose a namespace is",
            &[
                "the_operator_works_with_exactly_the_rights_of_its_chart/stolen",
                "the_operator_works_with_exactly_the_rights_of_its_chart/policies",
            ],
        )],
    ),
    of(
        "C1",
        "rows stayed ready where no watch could be opened",
        &[(
            WATCHES,
            &[
                "an_object_deleted_where_no_watch_works_is_made_again",
                "a_workload_that_fails_where_no_watch_works_is_not_ready",
            ],
        )],
    ),
    of(
        "C2",
        "from the 64th kind on nothing was watched",
        &[(
            WATCHES,
            &[
                "an_object_of_each_of_seventy_kinds_is_made_again_at_once",
                "watches_beyond_the_limit_of_an_edge_are_refused_at_once",
            ],
        )],
    ),
    of(
        "C3",
        "no cluster had a revision after a restore",
        &[(COPIED, &["a_hub_made_of_copied_objects_goes_on_where_it_was"])],
    ),
    of(
        "C4",
        "the watch was behind for ever",
        &[("A kind is not there yet", &["an_object_whose_kind_comes_late_is_made_once_and_kept"])],
    ),
    of(
        "D8",
        "the Lease was renewed by a task that had other work",
        &[(
            "The operator is busy for a long time",
            &["a_lease_is_renewed_while_no_thread_of_the_work_is_free"],
        )],
    ),
    of(
        "E1",
        "backup: copies of objects can be restored",
        &[(COPIED, &["a_hub_made_of_copied_objects_goes_on_where_it_was"])],
    ),
    of(
        "E2",
        "what was given up is removed when the cluster comes back",
        &[("It comes back after all", &["a_scan_waits_for_kinds_that_are_defined_and_not_served"])],
    ),
    of(
        "E3",
        "a right that is missing is told",
        &[("The credentials lack a right", &["a_row_says_which_kind_may_not_be_watched_until_it_may"])],
    ),
    of(
        "E4",
        "an operator that dies goes on from what is stored",
        &[(
            "The operator dies, at any moment",
            &["an_operator_killed_at_random_moments_ends_where_one_that_was_left_alone_ends"],
        )],
    ),
    of(
        "E5",
        "a cluster that does not answer delays no other",
        &[(
            "A cluster does not answer",
            &["a_cluster_that_cannot_be_reached_is_named_while_others_finish_and_gets_all_when_it_is_back"],
        )],
    ),
    of(
        "E6",
        "charts are bounded in size, time and memory",
        &[(
            CHART,
            &[
                "charts_that_allocate_are_refused_within_the_memory_of_one_render",
                "a_project_that_renders_all_it_may_leaves_a_turn_for_another",
                "a_project_waits_for_one_rendering_of_each_other_project",
            ],
        )],
    ),
    of(
        "E7",
        "a namespace of another cloud, or a release of another deployment, is not taken",
        &[(
            "a release or namespace of another",
            &[
                "a_namespace_that_another_cloud_has_is_not_taken",
                "a_release_that_another_deployment_has_is_refused_and_changes_nothing",
            ],
        )],
    ),
    of(
        "E8",
        "a hostile edge is bounded",
        &[(ANSWERS, &["watches_that_end_at_once_are_asked_for_with_growing_pauses"])],
    ),
    of(
        "E9",
        "no secret is in logs and events",
        &[(SECRETS, &["an_edge_that_quotes_a_secret_is_not_quoted"])],
    ),
    of(
        "E10",
        "the port of metrics is for named scrapers",
        &[(
            CONNECTIONS,
            &["the_operator_works_with_exactly_the_rights_of_its_chart/only_prometheus_is_let_in"],
        )],
    ),
];
