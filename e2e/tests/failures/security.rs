//! The rows of the page on security, by what attacks with, and the tests that show what stops it.

/// Second column, names of tests.
const SHOWN_BY: &[(&str, &[&str])] = &[
    (
        "a chart's Role that would lift Pod Security, the quota's count or the isolation, issue tokens, or bind the role of a neighbour",
        &[
            "a_chart_of_derived_rights_lifts_nothing_that_confines_it",
            "what_confines_a_namespace_is_read_and_never_written",
            "objects_of_emco_are_read_and_never_written",
            "many_great_rights_are_told_by_what_they_lead_to",
        ],
    ),
    (
        "a plan that asks a cluster what is in a namespace of others, to guess names and values",
        &[
            "a_plan_tells_nothing_of_a_namespace_of_others",
            "a_plan_asks_nothing_where_the_namespace_is_not_the_clouds",
            "a_namespace_that_a_provider_reserves_is_nobodys",
            "the_operators_own_namespace_is_nobodys",
        ],
    ),
    (
        "an earlier revision that is pinned, or the end of a deployment, that nobody approved",
        &[
            "who_may_edit_takes_nothing_back_or_down_without_an_approval",
            "a_pin_waits_for_an_approval_of_its_own",
            "a_pin_beyond_the_budget_waits_in_automatic_projects_too",
            "an_end_that_waits_is_no_way_around_the_confirmation_of_a_deletion",
        ],
    ),
    (
        "an object that was there before EMCO, taken over, and replaced without any mark while no operator runs",
        &[
            "what_was_taken_over_and_replaced_without_marks_is_not_deleted",
            "what_was_taken_over_is_known_without_marks_whatever_the_policy_is_now",
        ],
    ),
    (
        "a chart or values that read files, the network or other tenants",
        &[
            "the_engine_reaches_no_client_and_no_runtime",
            "archives_that_lead_out_or_unpack_to_too_much_are_refused_and_links_lead_nowhere",
        ],
    ),
    (
        "a chart that is huge, nests for ever, or never ends",
        &[
            "a_slow_chart_ends_at_its_time_limit",
            "a_key_that_takes_too_long_to_make_ends_at_the_time_limit",
            "an_archive_that_unpacks_beyond_its_limit_is_refused",
            "large_files_and_alias_bombs_are_refused",
            "kept_templates_end_within_their_limits",
            "charts_that_allocate_are_refused_within_the_memory_of_one_render",
            "a_project_that_renders_all_it_may_leaves_a_turn_for_another",
            "a_project_waits_for_one_rendering_of_each_other_project",
            "a_project_leaves_a_processor_to_everything_else",
            "a_project_works_on_one_chart_at_a_time",
            "a_project_never_has_all_turns",
            "two_projects_with_long_plans_leave_turns_to_others",
            "projects_that_wait_for_plans_take_turns_however_many_they_have",
            "slow_objects_of_two_namespaces_leave_places_to_others",
            "keys_of_a_slow_namespace_do_not_delay_those_of_others",
            "archives_of_one_project_leave_a_place_to_unpack_to_others",
            "a_project_that_fills_the_memory_drops_its_own_charts",
            "a_project_that_fills_the_disk_drops_its_own_archives",
            "a_plan_that_takes_too_long_is_refused_and_what_runs_stays",
            "a_plan_of_a_deployment_that_changes_meanwhile_ends_unreported",
            "charts_in_memory_count_with_all_that_they_unpack_to",
            "chains_in_reverse_order_are_resolved_link_by_link",
        ],
    ),
    (
        "servers of charts that answer slowly, and many apps that want charts of them",
        &[
            "a_new_pod_fetches_charts_of_a_dead_repository_beside_everything_else",
            "slow_servers_of_one_project_leave_places_to_others",
            "projects_that_wait_take_turns_and_are_woken",
            "a_body_of_a_byte_a_second_is_given_up_after_ten_seconds",
            "a_chart_that_is_not_at_hand_is_not_downloaded_by_who_looks",
            "archives_of_one_project_leave_a_place_to_unpack_to_others",
        ],
    ),
    (
        "an address of a chart that leads to the hub's API, to metadata services or to loopback",
        &[
            "tenants_reach_public_addresses_alone_however_they_are_written",
            "no_redirect_index_realm_or_git_server_leads_to_loopback_the_link_private_ranges_or_the_hub",
        ],
    ),
    (
        "a value of a Secret that stands in an object of another kind, such as an environment variable",
        &["a_number_of_a_secret_in_an_environment_is_refused_without_its_value"],
    ),
    (
        "a redirect that takes credentials elsewhere",
        &[
            "redirects_are_judged_anew_and_credentials_stay_at_home",
            "a_realm_on_another_host_gets_no_login_but_one_that_is_written_for_it",
        ],
    ),
    (
        "a release or namespace of another",
        &[
            "a_foreign_object_is_named_with_its_manager_and_not_changed",
            "a_namespace_that_another_cloud_has_is_not_taken",
            "a_second_cloud_with_a_namespace_that_is_taken_is_refused_and_woken",
            "a_release_that_another_deployment_has_is_refused_and_changes_nothing",
        ],
    ),
    (
        "a name such as `?watch=true` or `../../acme/secrets/kc` that would lead a request elsewhere",
        &[
            "a_name_that_begins_a_query_is_refused_when_it_is_applied",
            "a_stored_name_that_begins_a_query_is_refused_at_once",
            "a_stored_name_that_is_no_name_is_refused_without_a_request",
        ],
    ),
    ("text that commands the terminal of who reads it", &["a_text_from_a_cluster_commands_no_terminal"]),
    (
        "a chart that binds itself to more rights, lifts its quota, or writes elsewhere",
        &[
            "a_tenant_of_level_privileged_has_what_is_listed_and_no_more",
            "a_tenant_of_level_standard_may_do_what_its_account_may_only",
            "deployments_are_written_as_the_account_of_their_cloud",
            "a_right_that_never_comes_is_a_failure_in_the_servers_words",
        ],
    ),
    (
        "a template that forges our labels, or a digest guessed from a password",
        &["marks_go_to_the_top_level_only", "the_inputs_digest_does_not_help_to_guess_a_secret"],
    ),
    ("forging approvals", &["the_operator_works_with_exactly_the_rights_of_its_chart"]),
    (
        "a kubeconfig that runs programs or reads files",
        &["kubeconfigs_that_cannot_or_must_not_be_used_are_refused_with_the_cure"],
    ),
    (
        "answers that are endless, wrong or hostile",
        &[
            "an_answer_beyond_the_limit_is_given_up",
            "watches_that_end_at_once_are_asked_for_with_growing_pauses",
        ],
    ),
    (
        "pretending to be another",
        &["an_edge_made_anew_gets_nothing_until_somebody_confirms_it_and_then_everything"],
    ),
    (
        "a certificate or token of a person that is somebody else's",
        &[
            "what_is_signed_for_somebody_else_is_refused",
            "a_certificate_that_a_signer_made_for_somebody_else_is_not_kept",
            "a_certificate_for_somebody_else_is_refused",
            "a_certificate_of_another_key_is_refused",
            "a_key_is_in_secrets_alone",
        ],
    ),
    (
        "a person whose name is another tenant's, or `system:masters`",
        &[
            "a_person_has_the_names_of_project_and_cloud_before_the_own_one",
            "a_person_may_do_what_permissions_say_until_the_name_is_removed",
        ],
    ),
    (
        "a token of the account of deployments, a pod that runs as it, a role binding, made beforehand",
        &[
            "level_standard_is_enough_for_all_work_and_reaches_nothing_else",
            "what_a_person_made_there_is_named_when_the_name_is_removed",
            "what_remains_of_a_person_is_named_and_the_pages_promise_no_more",
        ],
    ),
    (
        "working on the same cluster",
        &[
            "an_edge_says_whose_it_is_and_another_hubs_edge_is_left_alone_until_it_is_moved",
            "a_confirmed_move_does_not_take_back_what_another_hub_took_since",
        ],
    ),
    (
        "writing with what it believed",
        &[
            "a_holder_that_was_stopped_finds_its_fence_closed_and_gives_up",
            "a_shard_of_a_later_epoch_is_left_alone",
        ],
    ),
    (
        "an expression that never ends or takes all memory, a pattern that explodes",
        &[
            "an_expression_that_would_not_end_is_cut_off",
            "patterns_of_all_rules_together_are_bounded",
            "no_answer_quotes_a_value_of_the_object",
        ],
    ),
    (
        "connections that it holds open, slow or without end",
        &[
            "crowds_at_the_port_of_metrics_delay_no_probe_and_no_scrape",
            "many_addresses_make_room_for_one_more",
            "probes_are_answered_while_all_threads_of_the_work_are_busy",
            "the_operator_works_with_exactly_the_rights_of_its_chart/only_prometheus_is_let_in",
        ],
    ),
    (
        "the operator's rights, by its token, or the labels that say whose a namespace is",
        &[
            "the_operator_works_with_exactly_the_rights_of_its_chart/stolen",
            "the_operator_works_with_exactly_the_rights_of_its_chart/policies",
        ],
    ),
    (
        "charts that define and use hundreds of kinds on a cluster that others share",
        &[
            "many_defined_kinds_leave_watches_to_workloads",
            "watches_beyond_the_limit_of_an_edge_are_refused_at_once",
            "an_object_deleted_where_no_watch_works_is_made_again",
            "a_workload_that_fails_where_no_watch_works_is_not_ready",
        ],
    ),
    (
        "many deployments, large rollouts, objects that a cluster takes long to admit",
        &[
            "a_rollout_on_100_shards_does_not_delay_another_owners_hook",
            "many_deployments_of_a_project_have_one_projects_share",
            "a_project_whose_requests_hang_does_not_stop_another",
            "many_deployments_of_a_project_do_not_come_before_another_project",
        ],
    ),
    (
        "secrets in them",
        &[
            "no_secret_appears_in_errors_or_debug",
            "half_credentials_are_refused_and_none_are_shown",
            "a_number_in_a_secret_is_refused_before_any_server_sees_it",
            "an_admission_policy_that_quotes_a_secret_is_not_quoted",
            "an_edge_that_quotes_a_secret_is_not_quoted",
            "a_template_that_fails_with_a_secret_value_does_not_show_it",
            "no_secret_of_the_hub_stands_in_anything_that_people_read",
        ],
    ),
];

/// Of the second table of the page: attacks by users, most of them on an installation from its charts.
const TRIED: &[(&str, &[&str])] = &[
    (
        "reading a kubeconfig, or an object of another project, of a provider or of the operator",
        &["a_tenant_with_all_rights_in_its_namespace_reaches_no_other_object"],
    ),
    (
        "another project's or namespace's objects, a value of a Secret, or a command, through what [the operator hands to \
         members](projects.md#what-members-see)",
        &[
            "members_see_their_own_deployments_and_nothing_beyond_them",
            "a_viewer_at_level_admin_sees_the_deployments_objects_alone",
            "values_of_secrets_are_withheld_and_their_names_are_not",
            "a_lent_connection_acts_as_its_account_and_quotes_no_secret",
        ],
    ),
    (
        "taking the operator's place: its token, its Lease, its policies, impersonation",
        &[
            "a_tenant_with_all_rights_in_its_namespace_reaches_no_other_object",
            "only_service_accounts_are_acted_as",
        ],
    ),
    (
        "a cluster or a level that is not granted, a namespace of somebody else on a cluster",
        &[
            "clusters_levels_and_namespaces_of_others_are_refused_to_a_logical_cloud",
            "a_cluster_that_is_not_granted_is_refused_until_a_grant_names_the_project",
            "a_grant_that_is_withdrawn_keeps_what_runs_and_refuses_what_is_new",
        ],
    ),
    (
        "the proof on a released namespace, copied, forged, or left by an earlier tenant of the same names",
        &[
            "a_proof_that_this_installation_did_not_make_for_the_owner_is_refused",
            "a_namespace_made_anew_with_a_copied_proof_is_refused",
            "whoever_is_given_the_names_of_a_tenant_later_gets_nothing_of_it",
            "a_released_namespace_that_others_took_since_is_theirs",
        ],
    ),
    (
        "a reference to a chart, a Secret, a logical cloud or an app of another project",
        &[
            "charts_secrets_clouds_and_clusters_of_others_are_not_found_by_a_deployment",
            "a_name_that_begins_a_query_is_refused_when_it_is_applied",
        ],
    ),
    (
        "writing, forging or deleting AppContexts and SyncShards, also with the verb `own` in its namespace, or another status",
        &[
            "revisions_and_shards_are_written_by_no_tenant_whatever_its_rights",
            "the_operator_works_with_exactly_the_rights_of_its_chart/policies",
        ],
    ),
    (
        "a pack with other manifests",
        &[
            "a_tenant_with_all_rights_in_its_namespace_reaches_no_other_object",
            "a_pack_with_another_content_is_made_anew_from_the_plan",
            "stored_manifests_that_are_deleted_or_damaged_come_back_and_nothing_is_removed_for_them",
            "every_torn_or_changed_byte_is_noticed",
        ],
    ),
    (
        "guessing a password against the digests that viewers see: of inputs, sets, manifests and packs",
        &[
            "the_inputs_digest_does_not_help_to_guess_a_secret",
            "the_digest_of_a_pack_does_not_help_to_guess_a_secret",
        ],
    ),
    (
        "approving its own change: by an object, a role, a binding, a membership, a status, another's name",
        &[
            "who_may_write_a_change_and_not_approve_it_cannot_have_it_carried_out",
            "the_operator_works_with_exactly_the_rights_of_its_chart/roles",
            "the_operator_works_with_exactly_the_rights_of_its_chart/follow_the_project",
        ],
    ),
    (
        "the label that gives its namespace to another project or a provider, and a Cluster of its own in it",
        &[
            "a_tenant_makes_its_namespace_no_other_projects_and_no_providers",
            "the_operator_works_with_exactly_the_rights_of_its_chart/policies",
        ],
    ),
    (
        "a ClusterRoleBinding, a webhook, labels of its own namespace, an object elsewhere",
        &[
            "a_chart_at_level_standard_lifts_nothing_that_confines_it_and_looks_up_nothing_of_others",
            "a_tenant_of_level_standard_may_do_what_its_account_may_only",
        ],
    ),
    (
        "a RoleBinding for everybody, or for the account of a neighbour",
        &[
            "a_chart_at_level_standard_lifts_nothing_that_confines_it_and_looks_up_nothing_of_others",
            "only_accounts_of_reached_namespaces_are_given_rights",
        ],
    ),
    (
        "a quota, NetworkPolicy or RoleBinding of the name that confines it, to take it over",
        &[
            "a_chart_at_level_standard_lifts_nothing_that_confines_it_and_looks_up_nothing_of_others",
            "pods_beyond_the_standard_are_refused_by_the_clusters",
        ],
    ),
    (
        "a NetworkPolicy of its own that opens a server, or labels that look like those of a client",
        &[
            "an_open_policy_of_a_chart_is_refused_by_name_and_nothing_is_written",
            "a_policy_that_is_weakened_in_any_of_ten_ways_is_found",
            "a_workload_of_the_deployment_that_looks_like_a_client_is_no_client",
        ],
    ),
    (
        "an annotation of EMCO, or Helm's `keep`, by which its pods would outlive their tenant without quota and isolation",
        &[
            "what_a_chart_keeps_stays_confined_and_is_named",
            "what_confines_stays_while_something_of_the_tenant_is_there",
            "marks_that_a_manifest_brings_are_not_sent",
        ],
    ),
    (
        "`lookup` of Secrets of others, and of everybody's",
        &[
            "a_chart_at_level_standard_lifts_nothing_that_confines_it_and_looks_up_nothing_of_others",
            "objects_of_others_are_not_found",
        ],
    ),
    (
        "a template bomb, a zip bomb, a link out of the archive",
        &[
            "a_chart_that_makes_900_mb_is_refused_and_others_go_on",
            "a_chart_that_spins_is_refused_and_others_go_on",
            "a_chart_that_prints_256_mib_is_refused_and_others_go_on",
            "nine_archives_that_unpack_to_their_limit_do_not_fill_the_memory",
            "archives_that_lead_out_or_unpack_to_too_much_are_refused_and_links_lead_nowhere",
        ],
    ),
    (
        "a kubeconfig that reads files, goes through a proxy, acts as another or verifies nothing",
        &[
            "everything_that_runs_reads_or_trusts_more_than_the_file_is_forbidden",
            "kubeconfigs_that_cannot_or_must_not_be_used_are_refused_with_the_cure",
            "a_kubeconfig_that_leads_to_loopback_is_refused_until_an_operator_s_flag_allows_it",
        ],
    ),
    (
        "text that is meant for a status",
        &[
            "html_is_not_kubernetes_and_is_not_quoted",
            "ten_megabytes_of_text_are_read_within_the_limits_and_are_not_kubernetes",
            "a_text_from_a_cluster_commands_no_terminal",
        ],
    ),
    (
        "a name or a value that would change or address another object",
        &[
            "names_that_mean_something_in_a_url_name_objects_or_are_refused",
            "a_chart_at_level_standard_lifts_nothing_that_confines_it_and_looks_up_nothing_of_others",
            "marks_go_to_the_top_level_only",
        ],
    ),
    (
        "one huge object, or thousands; as many deployments as fill the hub's etcd",
        &[
            "what_a_whole_project_stores_is_bounded_and_what_runs_stays",
            "what_all_projects_store_is_bounded_and_room_wakes_what_waits",
            "an_object_that_no_api_server_stores_is_refused_by_name_and_limit",
            "over_five_thousand_objects_in_an_app_are_refused_and_what_runs_stays",
            "limits_of_a_project_are_kept_and_what_runs_stays",
            "a_plan_beyond_what_its_project_may_store_is_refused_and_what_runs_stays",
        ],
    ),
    (
        "namespaces, role bindings and Secrets of the cluster that are not EMCO's",
        &["level_standard_is_enough_for_all_work_and_reaches_nothing_else"],
    ),
    (
        "the dashboard from outside: another host or origin, a guessed link, a frame, a form, 200 slow connections",
        &[
            "another_host_origin_or_secret_gets_nothing",
            "a_page_in_a_frame_and_a_form_of_another_site_do_nothing",
            "two_hundred_slow_connections_keep_nobody_out",
            "a_port_in_use_is_a_sentence_and_two_dashboards_have_two_secrets",
        ],
    ),
    ("markup in a text that the dashboard shows", &["markup_in_texts_of_tenants_and_edges_stays_text"]),
    (
        "rights that its work does not need",
        &[
            "the_operator_works_with_exactly_the_rights_of_its_chart",
            "the_operator_works_with_exactly_the_rights_of_its_chart/are_explained_and_used",
        ],
    ),
];

/// In the order of the page.
pub fn shown_by() -> Vec<super::failures::Row> {
    [SHOWN_BY, TRIED].concat()
}
