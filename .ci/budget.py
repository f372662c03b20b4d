"""Says which tests and programs took longer than they may, and fails a run for programs that cost more than they may, twice in a row.

What a program costs is its share of the seconds of processor of all programs on control planes, with all that they start. Seconds tell
of the machine: on the clock, one program on one commit took 89 s alone and 237 s beside three others; in seconds of processor, another
took 427 on one day and 640 on the next. Who takes long is named, and no run fails for it.
"""

import cache
from test_output import Summary

# Of a lane with nothing beside it, how much longer the same work takes in one of several on two cores.
BESIDE = 1.5
# Seconds: 45 for a test and 90 for a program that has the machine to itself. What needs longer belongs into `make soak`.
TEST_BUDGET, PROGRAM_BUDGET = 45 * BESIDE, 90 * BESIDE
# Programs that may take longer beside two or three others, and why. This table only shrinks: numbers become smaller, and entries go.
LARGE = {
    "controllers: unit tests": (300, "every rule of the controllers on an API server in memory"),
    "cli": (540, "67 tests of all commands on one bed, half a minute of which is one after the other"),
    "bad_input": (300, "starts planes with certificates and proxies of its own"),
    "install": (180, "installs and removes both charts again and again"),
    "restore": (280, "wipes the hub twice, and waits until edges that are away are given up"),
    "hostile": (190, "each attack goes on while another project works"),
    "pages": (220, "runs the examples of the book in their order"),
    "gitops": (150, "the checks of Flux and Argo CD on all stages"),
    "updates": (300, "every kind of object is changed as charts change them, beside Helm"),
    "deploy": (330, "a deployment's whole life, with hooks, clouds on demand and edits"),
    "inventory": (170, "loses the hub, and finds again what edges have"),
    "starts": (140, "seventy kinds, each of which a control plane defines first"),
}
# Tests that may take longer, by program: a test of a whole life, or one that waits until others have given back what there is once.
# It only shrinks, too.
LARGE_TESTS = {
    "bad_input": {
        "certificates::credentials_that_ended_stop_work_and_fresh_ones_bring_what_waited": 120,
        "certificates::an_edge_whose_certificate_expires_is_named_and_goes_on_with_the_next_one": 95,
    },
    "cli": {
        "remove::an_interrupted_removal_is_finished_and_what_stays_there_is_named": 240,
        "renewed::a_token_that_is_due_is_renewed_without_interruption": 230,
        "rotate::credentials_are_replaced_without_interruption_and_the_old_ones_end": 95,
    },
    "deletion": {
        "order::everything_deleted_in_any_order_leaves_clean_edges_also_those_that_were_away": 110,
        "provider::a_providers_namespace_that_is_deleted_takes_no_new_work_and_stays_until_its_last_user_is_gone": 95,
    },
    "deploy": {"on_demand::a_cloud_on_demand_is_on_clusters_while_a_deployment_is": 75},
    "gitops": {"differences::samples_that_were_synced_show_no_difference_in_argo_cd": 90},
    "helm: peak_memory": {"no_chart_takes_more_memory_than_a_render_may": 100},
    "hostile": {
        "a_chart_of_keys_for_many_clusters_holds_nobody_else_up": 90,
        "a_chart_that_makes_900_mb_is_refused_and_others_go_on": 75,
    },
    "install": {
        "leave::a_removed_installation_leaves_nothing_on_clusters_and_names_what_holds_it": 110,
        "the_operator_works_with_exactly_the_rights_of_its_chart": 110,
    },
    "inventory": {
        "a_deployment_whose_finalizer_is_removed_by_hand_leaves_clean_edges_and_no_inventory": 75,
        "a_hub_restored_from_a_backup_touches_no_edge_that_knows_more_until_that_is_confirmed": 75,
    },
    "pages": {
        "pages_on_a_hub_with_a_cluster_can_be_followed": 220,
        "kind::the_page_on_kind_ends_with_pods_of_the_first_application": 130,
    },
    "people": {"a_cluster_without_a_signer_gives_a_token": 75},
    "restore": {
        "abandon::what_is_left_on_an_edge_that_stays_away_is_given_up_and_removed_when_it_is_back": 80,
        "abandon::a_new_hub_takes_in_what_runs_on_edges_and_writes_nothing_there_but_what_nobody_wants": 70,
        "content::stored_manifests_that_are_deleted_or_damaged_come_back_and_nothing_is_removed_for_them": 120,
        "copies::a_hub_made_of_copied_objects_goes_on_where_it_was": 165,
    },
    "starts": {
        "an_object_of_each_of_seventy_kinds_is_made_again_at_once": 130,
        "an_edge_that_starts_while_work_waits_loses_and_repeats_nothing": 105,
    },
}
# Percent of the seconds of processor of all programs on control planes that one of them may cost, and those that may cost more: a
# seventh beyond the most of five runs. They only shrink, too.
COST = 7.0
COSTS = {"cli": 28.0, "deploy": 9.5, "dashboard": 9.5, "updates": 8.0}
# Of the last run on this machine: name and percent of the programs that cost more than they may.
KEPT = "over-share.json"


def allowed(program):
    return LARGE.get(program, (PROGRAM_BUDGET, ""))[0]


def over(program, summary, seconds):
    """What of a program, and the program itself, took too long: (its name, seconds, a sentence)."""
    large = LARGE_TESTS.get(program, {})
    for name, s in sorted(summary.times, key=lambda row: -row[1]):
        if s > large.get(name, TEST_BUDGET):
            has = f"this one has {large[name]} s" if name in large else f"a test has {TEST_BUDGET:.0f} s"
            yield f"{name} in {program}", s, f"{name} in {program} took {s:.0f} s, {has}"
    if seconds > allowed(program):
        whose = "this program" if program in LARGE else "a program"
        yield program, seconds, f"{program} took {seconds:.0f} s, {whose} has {allowed(program):.0f} s"


def bind(processors):
    """A summary of failures: what costs more than it may, and did in the last run on this machine.

    `processors`: seconds of processor by program, of all programs on control planes. Once is no failure, for caches may have been cold.
    """
    before, failed, all_of_them = cache.read(KEPT), Summary(), sum(processors.values())
    shares = {name: 100.0 * s / all_of_them for name, s in processors.items() if s}
    now = {name: round(share, 1) for name, share in shares.items() if share > COSTS.get(name, COST)}
    for name in sorted(now.keys() & before.keys()):
        failed.failed += 1
        failed.complaints.append(
            f"{name} costs {now[name]:.1f} % of the tests on control planes, in the last run {before[name]:.1f} %; "
            f"it has {COSTS.get(name, COST):.1f} %"
        )
    cache.change(KEPT, lambda _: now)
    return failed


def too_large(seconds):
    """Sentences on programs that keep the common budget, and need no entry in `LARGE`."""
    return [
        f"{name} took {s:.0f} s: it needs no budget of its own any more (LARGE in .ci/budget.py)"
        for name, s in seconds.items() if name in LARGE and s < PROGRAM_BUDGET / 2
    ]
