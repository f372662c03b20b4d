"""Tells which test programs passed with the same sources before, so that `.ci/run` does not run them again.

Only programs that compute are told so. A digest covers all that such a program is made of and reads. Not in it, on purpose: the commit,
so the sample that a test chooses by the commit, or at random, is another one only when the program changed; and the machine (its C
compiler, git, bash).
"""

import hashlib
import os
import subprocess

import budget
import cache
from command import ROOT, say

# Set by `.ci/run`: only there is everything built from what stands in the files, so only there a pass vouches for them.
WANTED = os.environ.get("EMCO_TEST_UNCHANGED") == "skip"
KEPT = "passed.json"
# Digests that are remembered of each program, and programs at most.
DIGESTS, PROGRAMS = 5, 200

# What every program is made by, beside the manifests of all packages (a package may switch on features of another one).
COMMON = ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml", ".cargo"]
# What the sources of a package name outside of its folder and of those it depends on. Whoever depends on it reads it, too.
# `unchanged_test.py` looks for what is missing here.
READS = {
    "emco-crds": ["config"],
    "emco-engine": ["docs/concepts.md"],
    "emco-controllers": ["config/operator", "docs/metrics.md", "operator/src"],
    "emco-operator": [
        "config/crd", "charts/emco", "docs/cli.md", "docs/dependencies.md", "docs/reference", "docs/troubleshooting.md",
    ],
    "emco-e2e": ["charts", "config"],
}
# Settings that change what is built or what a test does.
SETTINGS = (
    "RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_BUILD_", "CARGO_PROFILE_", "CLIPPY_ARGS", "RUSTC_", "PROPTEST_", "INSTA_",
    "EMCO_CRASH", "EMCO_TEST_SEED", "RUST_MIN_STACK", "RUST_TEST_THREADS", "TZ",
)


def closure(package, packages):
    """The package, and those of the workspace that it depends on, by whatever way, tests included."""
    by_name = {p["name"]: p for p in packages}
    found, look = set(), [package]
    while look:
        name = look.pop()
        if name in by_name and name not in found:
            found.add(name)
            look += [d["name"] for d in by_name[name]["dependencies"] if d.get("path")]
    return found


def paths(names, packages, root=ROOT):
    """The files and folders, relative to `root`, that programs of these packages are made of and read."""
    folder = {p["name"]: os.path.relpath(os.path.dirname(p["manifest_path"]), root) for p in packages}
    manifests = [os.path.relpath(p["manifest_path"], root) for p in packages]
    return sorted({*COMMON, *manifests, *(folder[n] for n in names), *(path for n in names for path in READS.get(n, []))})


def files(below, root=ROOT):
    """The files of the working tree below these paths, but what git ignores."""
    command = ["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *below]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    return sorted({os.fsdecode(name) for name in answer.split(b"\0") if name})


def digest(below, root=ROOT, said=""):
    """A digest of all files below these paths: names, kinds, contents; and of `said`."""
    total = hashlib.sha256(said.encode())
    for name in files(below, root):
        path = os.path.join(root, name)
        if os.path.islink(path):
            kind, content = "link", os.fsencode(os.readlink(path))
        elif os.path.isfile(path):
            kind = "program" if os.access(path, os.X_OK) else "file"
            with open(path, "rb") as file:
                content = file.read()
        else:
            kind, content = "gone", b""
        total.update(f"\0{name}\0{kind}\0{len(content)}\0".encode(errors="surrogateescape") + content)
    return total.hexdigest()


def settings():
    """The compiler, and what is set for builds and tests."""
    compiler = subprocess.run(["rustc", "-vV"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout
    return compiler + "".join(f"{name}={value}\n" for name, value in sorted(os.environ.items()) if name.startswith(SETTINGS))


class Unchanged:
    """What passed in earlier runs. Made before anything is built: what changes from then on is not what is built."""

    def __init__(self, packages, wanted=None, root=ROOT, said=None):
        self.packages, self.root = packages, root
        self.wanted = WANTED if wanted is None else wanted
        self.said = said
        self.before = self.digests(self.of(None)) if self.wanted else {}

    def of(self, package):
        """The packages that a program is one of: all of them where it is no single one's."""
        return [package] if package else sorted(p["name"] for p in self.packages)

    def digests(self, names):
        """The digests of these packages; none where this is no checkout."""
        try:
            said = settings() if self.said is None else self.said
            below = {name: paths(closure(name, self.packages), self.packages, self.root) for name in names}
            return {name: digest(below[name], self.root, said) for name in names}
        except (OSError, subprocess.CalledProcessError):
            return {}

    def digest(self, program, digests):
        """The digest of a program: of its packages, and of how it is called. None where it is to be run in any case."""
        if program.on_control_planes or not self.wanted:
            return None
        known = [digests.get(name) for name in self.of(program.package)]
        if None in known or not known:
            return None
        return hashlib.sha256("\0".join([program.name, *program.command[1:], *known]).encode()).hexdigest()

    def split(self, programs):
        """The programs to run, and those that passed as they are: (name, tests that passed then)."""
        kept, run, unchanged = cache.read(KEPT), [], []
        for program in programs:
            wanted = self.digest(program, self.before)
            passed = next((entry["passed"] for entry in kept.get(program.name, []) if wanted and entry["digest"] == wanted), None)
            if passed is None:
                run.append(program)
            else:
                unchanged.append((program.name, passed))
        return run, unchanged

    def ended(self, program, summary, seconds):
        """Remembers a program that passed. One that failed, left a part out, or took too long is to run again."""
        wanted = self.digest(program, self.before)
        if not wanted:
            return
        good = not summary.failed and not summary.skipped and not list(budget.over(program.name, summary, seconds))
        good = good and self.digest(program, self.digests(self.of(program.package))) == wanted

        def made(kept):
            entries = [entry for entry in kept.pop(program.name, []) if entry["digest"] != wanted]
            if good:
                entries.insert(0, {"digest": wanted, "passed": summary.passed})
            if entries:
                kept[program.name] = entries[:DIGESTS]
            return dict(list(kept.items())[-PROGRAMS:])

        try:
            cache.change(KEPT, made)
        except OSError as error:
            say(f"--- it is not remembered that {program.name} passed: {error}")
