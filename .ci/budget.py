"""Says which tests and programs took longer than they may, and fails a run for those that did so in the last run, too."""

import cache
from test_output import Summary

# Seconds. What needs longer belongs into `make soak`.
TEST_BUDGET, PROGRAM_BUDGET = 45, 90
# Programs that may take longer, and why. This table only shrinks: numbers become smaller, and entries go.
LARGE = {
    "controllers: unit tests": (300, "every rule of the controllers on an API server in memory"),
    "cli": (350, "67 tests of all commands on one bed"),
    "bad_input": (240, "starts planes with certificates and proxies of its own"),
    "install": (180, "installs and removes both charts again and again"),
    "deletion": (120, "ends with planes that are away"),
    "restore": (140, "wipes the hub twice, and waits until edges that are away are given up"),
    "hostile": (160, "each attack goes on while another project works"),
    "pages": (150, "runs the examples of the book in their order"),
    "gitops": (150, "the checks of Flux and Argo CD on all stages"),
}
# Whether being over budget twice fails the run. Not before all that is over it today was mended or moved to `make soak`: until then the
# end of each run names it.
BINDS = False
# Of the last run on this machine: name and seconds of what was over its budget.
KEPT = "over-budget.json"


def allowed(program):
    return LARGE.get(program, (PROGRAM_BUDGET, ""))[0]


def over(program, summary, seconds):
    """What of a program, and the program itself, took too long: (its name, seconds, a sentence)."""
    for name, s in sorted(summary.times, key=lambda row: -row[1]):
        if s > TEST_BUDGET:
            yield f"{name} in {program}", s, f"{name} in {program} took {s:.0f} s, a test has {TEST_BUDGET} s"
    if seconds > allowed(program):
        whose = "this program" if program in LARGE else "a program"
        yield program, seconds, f"{program} took {seconds:.0f} s, {whose} has {allowed(program)} s"


def bind(summaries, seconds):
    """A summary of failures: what is over its budget, and was in the last run of it on this machine.

    `summaries`: (name of program, what it said). Once is no failure, for the machine may have been busy.
    """
    before = cache.read(KEPT)
    now, failed = {}, Summary()
    for program, summary in summaries:
        for name, s, sentence in over(program, summary, seconds.get(program, 0.0)):
            now[name] = {"program": program, "seconds": round(s, 1)}
            if name in before and BINDS:
                failed.failed += 1
                failed.complaints.append(f"over budget, as in the last run ({before[name]['seconds']:.0f} s): {sentence}")
    # Of a program that did not run, what is known of its last run stays.
    cache.change(KEPT, lambda kept: {**{n: entry for n, entry in kept.items() if entry["program"] not in seconds}, **now})
    return failed


def too_large(seconds):
    """Sentences on programs that keep the common budget, and need no entry in `LARGE`."""
    return [
        f"{name} took {s:.0f} s: it needs no budget of its own any more (LARGE in .ci/budget.py)"
        for name, s in seconds.items() if name in LARGE and s < PROGRAM_BUDGET / 2
    ]
