//! In: the page of failures. Out: whether each of its rows is shown by a test that exists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What the first column says, and the tests that show what the others say.
const SHOWN_BY: [(&str, &[&str]); 36] = [
    (
        "A cluster does not answer",
        &["a_cluster_that_cannot_be_reached_is_named_while_others_finish_and_gets_all_when_it_is_back"],
    ),
    (
        "A cluster never comes back",
        &[
            "a_dead_cluster_is_given_up_after_its_time_and_cleaned_when_it_returns",
            "a_person_gives_up_by_typing_the_uid_and_nothing_else",
        ],
    ),
    (
        "It comes back after all",
        &[
            "a_dead_cluster_is_given_up_after_its_time_and_cleaned_when_it_returns",
            "another_cluster_under_the_same_name_is_not_cleaned",
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
        &["a_right_that_is_missing_is_told_with_the_object_and_the_rest_is_applied"],
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
        &["an_edge_says_whose_it_is_and_another_hubs_edge_is_left_alone_until_it_is_moved"],
    ),
    ("A manifest is refused", &["a_refused_manifest_is_failed_with_the_servers_words_and_never_applied"]),
    ("A kind is not there yet", &["a_custom_resource_waits_for_its_kind_and_the_rest_does_not"]),
    ("The object is somebody else's", &["a_foreign_object_is_named_with_its_manager_and_nothing_is_sent"]),
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
        "A workload does not become ready",
        &["a_workload_that_does_not_become_ready_is_counted_by_app_and_cluster_and_what_ran_stays"],
    ),
    (
        "Something that is referred to is missing",
        &["what_a_deployment_refers_to_is_named_while_it_is_missing_and_its_arrival_is_noticed"],
    ),
    (
        "The chart's source is down",
        &["a_repository_that_was_down_is_asked_again_without_anybody_doing_anything"],
    ),
    (
        "The source serves other bytes under the same version",
        &["other_bytes_under_the_same_version_are_refused_and_what_runs_stays"],
    ),
    ("The chart does not render", &["an_error_in_a_template_names_the_file_of_the_chart_and_the_line"]),
    (
        "One app makes more than 5,000 objects",
        &[
            "five_thousand_objects_in_one_app_are_deployed_and_removed_and_one_more_is_refused",
            "an_app_of_five_thousand_objects_is_deployed_and_one_object_more_is_refused",
        ],
    ),
    ("No cluster matches", &["a_placement_that_matches_nothing_is_refused_and_what_runs_stays"]),
    ("A field is not supported yet", &["a_field_of_a_later_version_is_answered_instead_of_ignored"]),
    (
        "The operator dies, at any moment",
        &["an_operator_killed_at_random_moments_ends_where_one_that_was_left_alone_ends"],
    ),
    (
        "The hub's API server is down",
        &[
            "an_outage_shorter_than_the_lease_is_survived",
            "a_hub_that_does_not_answer_closes_the_fence_before_the_lease_ends",
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
        &["what_is_in_use_stays_with_its_holders_named_and_goes_when_they_are_gone"],
    ),
    (
        "A stored manifest pack is lost",
        &[
            "a_lost_pack_stops_pruning_and_is_noticed_by_a_process_that_had_read_it",
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
        ],
    ),
];

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The first cells of all rows.
fn rows() -> BTreeSet<String> {
    let page = std::fs::read_to_string(root().join("docs/failures.md")).unwrap();
    let cells =
        page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next().map(str::to_owned));
    cells.filter(|cell| cell != "What happens").collect()
}

#[test]
fn every_row_of_the_page_of_failures_is_shown_by_a_test() {
    let shown: BTreeSet<String> = SHOWN_BY.iter().map(|(row, _)| (*row).to_owned()).collect();
    assert_eq!(rows(), shown);
}

#[test]
fn the_tests_that_show_them_exist() {
    let mut found = BTreeMap::new();
    for part in ["controllers", "crds", "e2e", "operator"] {
        collect(&root().join(part), &mut found);
    }
    for (row, tests) in SHOWN_BY {
        for test in tests {
            assert!(found.contains_key(*test), "no test {test}, which is to show: {row}");
        }
    }
}

/// Names of functions right under an attribute that makes them a test, with their files.
fn collect(folder: &Path, found: &mut BTreeMap<String, PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            collect(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut test = false;
            for line in text.lines().map(str::trim) {
                if let Some((_, name)) = line.split_once("fn ").filter(|_| test) {
                    found.insert(name.split('(').next().unwrap().to_owned(), path.clone());
                }
                test = line.starts_with("#[test") || line.starts_with("#[tokio::test");
            }
        }
    }
}
