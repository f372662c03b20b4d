"""Ends a run of the tests: why tests failed, what was slow, what is unsteady, and the counts."""

# Seconds. What needs longer belongs into `make soak`.
TEST_BUDGET, PROGRAM_BUDGET = 45, 90
SLOWEST = 10
# Failures that are named last of all, where everybody sees them.
NAMED = 12


def over_budget(times, programs):
    """Sentences on tests and programs that took longer than they may."""
    tests = [f"over budget: {name} took {s:.0f} s, a test has {TEST_BUDGET} s" for name, s in times if s > TEST_BUDGET]
    return tests + [
        f"over budget: {name} took {s:.0f} s, a program has {PROGRAM_BUDGET} s"
        for name, s in sorted(programs.items(), key=lambda item: -item[1]) if s > PROGRAM_BUDGET
    ]


def failures(summaries):
    """A line for each failure, with its own words."""
    for program, summary in summaries:
        for name in summary.failures:
            yield f"failed: {name} in {program}: {summary.reason(name)}".rstrip(": ")
        for complaint in summary.complaints:
            yield f"failed: {complaint}"


def lines(summaries, seconds, unsteady):
    """The end of a run. `summaries`: (name of program, what it said); `seconds`: of each program; `unsteady`: (name, first failure).

    What matters most comes last.
    """
    for _, summary in summaries:
        for name, *cause in summary.causes:
            yield f"\n{name}:" + "".join(f"\n  {line}" for line in cause)
    times = sorted(
        ((f"{name} in {program}", s) for program, summary in summaries for name, s in summary.times), key=lambda row: -row[1]
    )
    if times:
        yield "\nthe slowest tests:"
    for name, s in times[:SLOWEST]:
        yield f"{s:8.1f} s  {name}"
    if seconds:
        yield "the slowest programs:"
    for name, s in sorted(seconds.items(), key=lambda row: -row[1])[:SLOWEST]:
        yield f"{s:8.1f} s  {name}"
    yield from over_budget(times, seconds)
    named = list(failures(summaries))
    yield from named[:NAMED]
    if len(named) > NAMED:
        yield f"failed: {len(named) - NAMED} more, named above"
    for name, first in unsteady:
        yield f"unsteady: {name} (first failure: {first})"
