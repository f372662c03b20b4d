"""Finds the test programs of the workspace, and says which wait for control planes and which compute."""

import json
import os
import subprocess

from command import ROOT, RUNNING

CARGO = os.environ.get("CARGO", "cargo")
# The package whose test programs start control planes. Those wait more than they compute, so several run at once, and what they
# wait for may now and then come late: a test of theirs that fails is told apart from one that always fails.
ON_CONTROL_PLANES = "emco-e2e"
# Tests in modules of this name are too slow for every change: they are built and linted with all others, and `make soak` runs them.
SOAK = ["--skip", "soak::"]


class Program:
    """A test program: its name for people, the command, where it runs, whether it uses control planes, and whose it is.

    One without a package is made of all of them.
    """

    def __init__(self, name, command, cwd=ROOT, env=None, on_control_planes=False, package=None):
        self.name, self.command, self.cwd, self.env = name, command, cwd, env or {}
        self.on_control_planes, self.package = on_control_planes, package

    def environment(self):
        return {**os.environ, **self.env}

    def only(self, tests):
        """The command that runs these tests alone, one after the other."""
        return [*self.command, "--exact", *tests, "--test-threads=1"]


def artifacts(output):
    """The test programs that Cargo names in its messages, each (package's folder, target's kind, target's name, program, fresh)."""
    found = []
    for line in output.splitlines():
        message = json.loads(line) if line.startswith("{") else {}
        if message.get("reason") == "compiler-artifact" and message["profile"]["test"] and message.get("executable"):
            target = message["target"]
            folder = os.path.dirname(message["manifest_path"])
            found.append((folder, target["kind"][0], target["name"], message["executable"], message["fresh"]))
    return found


def build(flags=()):
    """Builds the test programs (all, unless `flags` say which) and answers Cargo's messages; None when that fails."""
    command = [CARGO, "test", "--workspace", *flags, "--no-run", "--message-format=json-render-diagnostics"]
    RUNNING.append("cargo test --no-run")
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    RUNNING.remove("cargo test --no-run")
    return answer.stdout if answer.returncode == 0 else None


def metadata():
    """The packages of the workspace, as Cargo tells them."""
    command = [CARGO, "metadata", "--no-deps", "--format-version", "1"]
    return json.loads(subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True).stdout)["packages"]


def programs(found, packages, wanted=()):
    """The programs to run. Of all packages, or of those named (`e2e`): then only their integration tests.

    Cargo would run them one after the other, so they are run as Cargo would run each.
    """
    of_folder = {os.path.dirname(p["manifest_path"]): p for p in packages}
    made = []
    for folder, kind, name, executable, _ in sorted(found):
        package = of_folder[folder]
        short = package["name"].removeprefix("emco-")
        if wanted and (short not in wanted or kind != "test"):
            continue
        env = {
            "CARGO": CARGO, "CARGO_MANIFEST_DIR": folder, "CARGO_PKG_NAME": package["name"],
            "CARGO_PKG_VERSION": package["version"],
            # For the time of each test, which the stable harness measures but does not show.
            "RUSTC_BOOTSTRAP": "1",
        }
        on_planes = kind == "test" and package["name"] == ON_CONTROL_PLANES
        # The test bed's own library has a module of that name: the command `soak`, whose unit tests are quick.
        own = kind != "test" and package["name"] == ON_CONTROL_PLANES
        command = [executable, "-Z", "unstable-options", "--report-time", *([] if own else SOAK)]
        what = {"lib": "unit tests", "bin": f"unit tests of {name}"}.get(kind, name)
        title = name if on_planes else f"{short}: {what}"
        made.append(Program(title, command, folder, env, on_planes, package["name"]))
    if not wanted:
        made.append(Program("doc", [CARGO, "test", "--no-fail-fast", "--workspace", "--doc"]))
    return made
