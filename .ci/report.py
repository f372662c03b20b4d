"""Ends a run of the tests: why tests failed, what was slow, what was left out, what is unsteady, and the counts."""

import budget

SLOWEST = 10
# Failures that are named last of all, where everybody sees them.
NAMED = 12


def over_budget(summaries, seconds):
    """Sentences on tests and programs that took longer than they may: tests first, the slowest first."""
    found = [
        (name != program, s, sentence)
        for program, summary in summaries for name, s, sentence in budget.over(program, summary, seconds.get(program, 0.0))
    ]
    return [f"over budget: {sentence}" for _, _, sentence in sorted(found, reverse=True)]


def left_out(summaries, unchanged):
    """Sentences on what was not run: what cannot be on this machine, and what passed as it is."""
    skipped = [(*entry, program) for program, summary in summaries for entry in summary.skipped]
    if skipped:
        yield f"{len(skipped)} skipped on this machine:"
    for name, why, program in skipped:
        yield f"skipped: {name} in {program}: {why}"
    if unchanged:
        tests = sum(passed for _, passed in unchanged)
        names = ", ".join(name for name, _ in unchanged)
        number, they = ("1 program", "it") if len(unchanged) == 1 else (f"{len(unchanged)} programs", "they")
        yield f"{number} unchanged since {they} passed ({tests} tests, not counted below): {names}"


def failures(summaries):
    """A line for each failure, with its own words."""
    for program, summary in summaries:
        for name in summary.failures:
            yield f"failed: {name} in {program}: {summary.reason(name)}".rstrip(": ")
        for complaint in summary.complaints:
            yield f"failed: {complaint}"


def dearest(processors):
    """The programs that kept the processors busy for longest, with all that they started, and the sum of all."""
    if processors:
        yield f"the dearest programs, in seconds of processor, of {sum(processors.values()):.0f} in all:"
    for name, s in sorted(processors.items(), key=lambda row: -row[1])[:SLOWEST]:
        yield f"{s:8.1f} s  {name}"


def lines(summaries, seconds, unsteady, unchanged=(), table=(), processors=()):
    """The end of a run. `summaries`: (name of program, what it said); `seconds`: of each program; `unsteady`: (name, first failure);
    `unchanged`: (name of program, tests that passed then); `table`: lines on the steps of the run; `processors`: seconds of each program.

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
    yield from dearest(dict(processors))
    yield from table
    yield from left_out(summaries, unchanged)
    yield from budget.too_large(seconds)
    yield from over_budget(summaries, seconds)
    named = list(failures(summaries))
    yield from named[:NAMED]
    if len(named) > NAMED:
        yield f"failed: {len(named) - NAMED} more, named above"
    for name, first in unsteady:
        yield f"unsteady: {name} (first failure: {first})"
