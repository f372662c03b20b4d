#!/usr/bin/env python3
"""Renders charts with random changes to their values, with Helm and with emco-helm, and compares the objects.

usage: overlays.py --charts FOLDER_OF_CHARTS --helm HELM --emco-helm EMCO_HELM [--count 100] [--seed 0] [--only TEXT] [--jobs N]

Both failing counts as agreement. Leaves that differ between two runs of Helm (passwords, dates) are left aside.
Needs PyYAML. Exits with 1 when something differs.
"""
import argparse
import collections
import concurrent.futures
import copy
import os
import random
import subprocess
import sys
import tempfile

import yaml


class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    pass


for tag in ("timestamp", "value"):
    Loader.add_constructor("tag:yaml.org,2002:" + tag, lambda loader, node: node.value)

FLAGS = ["--namespace", "myns", "--include-crds", "--kube-version", "1.32.0", "--skip-schema-validation"]
SCALARS = [None, True, False, 0, 1, -3, 2.5, 1000000, 1e21, "", "text", "5", "true", "a: b", "{{ .Release.Name }}", "x" * 70,
           "two\nlines\n", "~", "0x1f", "1e3", "caf\u00e9 \u2713", [], {}, ["a", "b"], [1], {"k": "v"}, {"a": {"b": 1}}]


def paths(value, prefix=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            if isinstance(key, str):
                yield prefix + (key,)
                yield from paths(inner, prefix + (key,))


def overlay(values, rng):
    """A mapping that changes one to four places of the values."""
    places = list(paths(values)) or [("extra",)]
    out = {}
    for _ in range(rng.randint(1, 4)):
        path = rng.choice(places)
        old = values
        for key in path:
            old = old.get(key) if isinstance(old, dict) else None
        if isinstance(old, bool) and rng.random() < 0.7:
            new = not old
        elif isinstance(old, str) and rng.random() < 0.5:
            new = rng.choice(["text", "", "other-name", "1.2.3"])
        else:
            new = copy.deepcopy(rng.choice(SCALARS))
        place = out
        for key in path[:-1]:
            place = place.setdefault(key, {})
            if not isinstance(place, dict):
                break
        if isinstance(place, dict):
            place[path[-1]] = new
    return out


def render(command, chart, files):
    args = [command, "template", "myrel", chart] + FLAGS
    for name in files:
        args += ["--values", name]
    try:
        run = subprocess.run(args, capture_output=True, timeout=120)
    except subprocess.TimeoutExpired:
        return None, "timed out"
    if run.returncode:
        return None, run.stderr.decode("utf8", "replace")
    return run.stdout.decode("utf8", "replace"), ""


def complaint(text):
    """The error itself, without warnings and advice around it."""
    return next((line for line in text.splitlines() if line.startswith("Error")), text)


def documents(text):
    return [document for document in yaml.load_all(text, Loader=Loader) if document is not None]


def differences(a, b, path=()):
    number = lambda x: isinstance(x, (int, float)) and not isinstance(x, bool)
    if type(a) is not type(b) and not (number(a) and number(b)):
        yield path, a, b
    elif isinstance(a, dict):
        for key in sorted(set(a) | set(b), key=str):
            if key in a and key in b:
                yield from differences(a[key], b[key], path + (key,))
            else:
                yield path + (key,), a.get(key, "<absent>"), b.get(key, "<absent>")
    elif isinstance(a, list):
        if len(a) != len(b):
            yield path, a, b
        for index, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, path + (index,))
    elif a != b:
        yield path, a, b


def one(options, chart, seed):
    rng = random.Random(f"{chart} {seed}")
    folder = os.path.join(options.charts, chart)
    try:
        with open(os.path.join(folder, "values.yaml"), encoding="utf8") as file:
            values = yaml.load(file, Loader=Loader) or {}
    except (OSError, yaml.YAMLError):
        values = {}
    change = overlay(values if isinstance(values, dict) else {}, rng)
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf8") as file:
        yaml.safe_dump(change, file, allow_unicode=True)
        file.flush()
        want, want_error = render(options.helm, folder, [file.name])
        got, got_error = render(options.emco_helm, folder, [file.name])
        if want is None or got is None:
            if (want is None) == (got is None):
                want_error, got_error = complaint(want_error), complaint(got_error)
                same = want_error == got_error
                return "both fail, same words" if same else "both fail", "" if same else f"{want_error[:300]} / {got_error[:300]}", change
            return ("only Helm fails" if want is None else "only emco-helm fails"), (want_error or got_error)[:600], change
        if want == got:
            return "same bytes", "", change
        found = list(differences(documents(want), documents(got)))
        if found:
            again, _ = render(options.helm, folder, [file.name])
            random_leaves = {path for path, _, _ in differences(documents(want), documents(again or ""))}
            found = [item for item in found if item[0] not in random_leaves]
        return ("different", str(found[:3])[:800], change) if found else ("same objects", "", change)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--charts", required=True)
    parser.add_argument("--helm", required=True)
    parser.add_argument("--emco-helm", required=True)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--words", action="store_true", help="show errors whose words differ")
    options = parser.parse_args()
    charts = sorted(name for name in os.listdir(options.charts) if options.only in name
                    and os.path.exists(os.path.join(options.charts, name, "Chart.yaml")))
    rng = random.Random(options.seed)
    cases = [(rng.choice(charts), options.seed * 1_000_000 + index) for index in range(options.count)]
    counts = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for (chart, seed), (state, detail, change) in zip(cases, pool.map(lambda case: one(options, *case), cases)):
            counts[state] += 1
            if state in ("different", "only Helm fails", "only emco-helm fails") or (options.words and detail):
                print(chart, seed, state, detail, "\n   ", change)
    print(dict(counts))
    sys.exit(1 if any(state in counts for state in ("different", "only Helm fails", "only emco-helm fails")) else 0)


if __name__ == "__main__":
    main()
