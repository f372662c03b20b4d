//! The rows of the chapter "Through Git", and the tests that show what they say.

use super::Row;

const FAULTS: &[&str] = &["what_goes_wrong_with_a_push_costs_no_object_and_is_told"];
const CLAIMS: &[&str] = &["a_folder_that_is_not_ours_is_left_alone_until_somebody_confirms"];

pub const GIT: &[Row] = &[
    ("A push arrives and its answer is lost", FAULTS),
    ("Somebody else commits meanwhile", FAULTS),
    ("The server refuses the push", FAULTS),
    ("The repository is rewound, emptied or replaced", FAULTS),
    ("Somebody edits or deletes EMCO's files", FAULTS),
    ("Another hub has the folder, or there are files and no claim", CLAIMS),
    ("The hub is older than what it published, restored from a backup", CLAIMS),
    ("Two GitTargets have one folder", &["the_younger_of_two_targets_on_one_folder_publishes_nothing"]),
    (
        "The agent is missing, stands still or fails",
        &["an_agent_is_judged_by_its_condition_and_by_what_it_applied"],
    ),
    (
        "A tenant's chart makes what its account may not",
        &["a_refusal_of_flux_is_told_in_its_words_and_nothing_else_is_one"],
    ),
];
