"""What is not run again since it passed, and what runs it again."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

import cache
import unchanged
from command import ROOT
from programs import Program, metadata
from test_output import Summary
from unchanged import COMMON, READS, Unchanged, closure

# A small workspace: `top` depends on `low` in its tests alone, `else` on nothing.
FILES = {
    "Cargo.toml": "[workspace]", "Cargo.lock": "version = 4", "rust-toolchain.toml": "1.95.0", ".cargo/config.toml": "[env]",
    ".gitignore": "/target", "clippy.toml": "a = 1", "README.md": "a page",
    "low/Cargo.toml": "low", "low/src/lib.rs": "fn low() {}", "low/tests/data.json": "{}",
    "top/Cargo.toml": "top", "top/src/lib.rs": "fn top() {}", "top/tests/laws.rs": "laws",
    "else/Cargo.toml": "else", "else/src/lib.rs": "fn other() {}", "config/crd/a.yaml": "kind: A", "docs/page.md": "a page",
}
# What `top: laws` is made of and reads.
ITS_OWN = [
    *COMMON[:3], ".cargo/config.toml", "low/Cargo.toml", "low/src/lib.rs", "low/tests/data.json", "top/Cargo.toml", "top/src/lib.rs",
    "top/tests/laws.rs", "else/Cargo.toml", "config/crd/a.yaml",
]


def package(root, name, *needs):
    below = [{"name": need, "path": os.path.join(root, need), "kind": "dev"} for need in needs]
    return {"name": name, "manifest_path": os.path.join(root, name, "Cargo.toml"), "dependencies": [*below, {"name": "serde"}]}


def passing(number=3):
    made = Summary()
    made.passed = number
    return made


class Again(unittest.TestCase):
    def setUp(self):
        for folder in "root", "kept":
            made = tempfile.TemporaryDirectory()
            self.addCleanup(made.cleanup)
            setattr(self, folder, made.name)
        cache.FOLDER = self.kept
        before = dict(READS)
        self.addCleanup(lambda: (READS.clear(), READS.update(before)))
        READS["low"] = ["config/crd"]
        for path, text in FILES.items():
            self.write(path, text)
        subprocess.run(["git", "-C", self.root, "init", "--quiet"], check=True)
        subprocess.run(["git", "-C", self.root, "add", "."], check=True)
        self.packages = [package(self.root, "low"), package(self.root, "top", "low"), package(self.root, "else")]
        self.laws = Program("top: laws", ["/x/laws-1", "--skip", "soak::"], package="top")

    def write(self, path, text):
        path = os.path.join(self.root, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def known(self, wanted=True, said="rustc 1.95"):
        return Unchanged(self.packages, wanted, self.root, said)

    def run_again(self, program=None, **of):
        """Whether the program is to be run."""
        run, passed = self.known(**of).split([program or self.laws])
        self.assertEqual(len(run) + len(passed), 1)
        return bool(run)

    def test_what_passed_is_not_run_again(self):
        self.assertTrue(self.run_again())
        self.known().ended(self.laws, passing(), 1.0)
        self.assertEqual(self.known().split([self.laws]), ([], [("top: laws", 3)]))

    def test_a_changed_byte_in_what_it_is_made_of_runs_it_again(self):
        self.known().ended(self.laws, passing(), 1.0)
        for path in ITS_OWN:
            self.write(path, FILES[path] + "x")
            self.assertTrue(self.run_again(), path)
            self.write(path, FILES[path])
            self.assertFalse(self.run_again(), path)

    def test_what_it_is_not_made_of_runs_it_not(self):
        self.known().ended(self.laws, passing(), 1.0)
        for path in sorted(set(FILES) - set(ITS_OWN)):
            self.write(path, FILES[path] + "x")
        self.write("target/debug/laws", "ignored by git")
        self.assertFalse(self.run_again())

    def test_a_new_a_removed_and_a_renamed_file_run_it_again(self):
        self.known().ended(self.laws, passing(), 1.0)
        self.write("low/tests/more.json", "{}")
        self.assertTrue(self.run_again())
        os.remove(os.path.join(self.root, "low/tests/more.json"))
        self.assertFalse(self.run_again())
        os.rename(os.path.join(self.root, "low/tests/data.json"), os.path.join(self.root, "low/tests/other.json"))
        self.assertTrue(self.run_again())

    def test_another_compiler_setting_or_call_runs_it_again(self):
        self.known().ended(self.laws, passing(), 1.0)
        self.assertTrue(self.run_again(said="rustc 1.96"))
        self.assertTrue(self.run_again(Program("top: laws", ["/x/laws-1"], package="top")))
        self.assertFalse(self.run_again(Program("top: laws", ["/y/laws-2", "--skip", "soak::"], package="top")))
        os.environ["PROPTEST_CASES"] = "1000"
        self.addCleanup(os.environ.pop, "PROPTEST_CASES")
        self.assertIn("PROPTEST_CASES=1000\n", unchanged.settings())

    def test_doc_tests_are_of_all_packages(self):
        doc = Program("doc", ["cargo", "test", "--doc"])
        self.known().ended(doc, passing(), 1.0)
        self.assertFalse(self.run_again(doc))
        self.write("else/src/lib.rs", "fn changed() {}")
        self.assertTrue(self.run_again(doc))

    def test_what_failed_skipped_or_took_too_long_leaves_nothing(self):
        failed, skipped, slow = passing(), passing(), passing()
        failed.failed, skipped.skipped, slow.times = 1, [("fish", "no network")], [("a::b", 69.0)]
        for said, seconds in (failed, 1.0), (skipped, 1.0), (slow, 75.0), (passing(), 136.0):
            self.known().ended(self.laws, passing(), 1.0)
            self.known().ended(self.laws, said, seconds)
            self.assertTrue(self.run_again())

    def test_what_changed_while_it_ran_leaves_nothing(self):
        known = self.known()
        self.write("low/src/lib.rs", "fn edited() {}")
        known.ended(self.laws, passing(), 1.0)
        self.assertTrue(self.run_again())

    def test_only_the_gate_leaves_out_and_remembers(self):
        self.known(wanted=False).ended(self.laws, passing(), 1.0)
        self.assertTrue(self.run_again())
        self.known().ended(self.laws, passing(), 1.0)
        self.assertTrue(self.run_again(wanted=False))

    def test_what_waits_for_control_planes_is_always_run(self):
        plane = Program("deploy", ["/x/deploy-1"], on_control_planes=True, package="top")
        self.known().ended(plane, passing(), 1.0)
        self.assertTrue(self.run_again(plane))

    def test_a_few_digests_are_kept(self):
        for number in range(9):
            self.write("top/src/lib.rs", str(number))
            self.known().ended(self.laws, passing(), 1.0)
        self.assertEqual(len(cache.read(unchanged.KEPT)["top: laws"]), unchanged.DIGESTS)
        self.assertFalse(self.run_again())

    def test_without_a_checkout_everything_is_run(self):
        shutil.rmtree(os.path.join(self.root, ".git"))
        os.environ["GIT_CEILING_DIRECTORIES"] = os.path.dirname(self.root)
        self.addCleanup(os.environ.pop, "GIT_CEILING_DIRECTORIES")
        self.known().ended(self.laws, passing(), 1.0)
        self.assertTrue(self.run_again())


# A path that a source names: included into it, or joined to its package's folder or the repository's.
INCLUDED = re.compile(r'include(?:_str|_bytes)?!\(\s*"([^"]+)"')
IN_PACKAGE = re.compile(r'CARGO_MANIFEST_DIR"\)\)?(?:\s*\.join\(|,\s*)"/?([^"]*)"')
IN_ROOT = re.compile(r'(?<![.\w])root\(\)\s*\.join\(\s*"([^"]+)"')
# Any other way up, or out of the package, is looked at by people: by file, what it reads.
UP = re.compile(r'CARGO_MANIFEST_DIR"\)\)?\s*\.parent\(|CARGO_MANIFEST_DIR"\)\)?(?:\s*\.join\(|,\s*)"/?\.\./?"')
BY_HAND = {
    "controllers/src/remote/dialer/tests.rs": [
        "controllers/src", "controllers/engine/src", "controllers/helm/src", "crds/src", "operator/src",
    ],
    "crds/tests/support/files.rs": ["config/crd", "config/samples", "crds/tests/full"],
    "e2e/src/operator.rs": ["config/crd", "config/samples", "charts/emco", "charts/emco-crds"],
}


class Reads(unittest.TestCase):
    """The table of what packages read outside of their folders has all that their sources name."""

    def sources(self):
        """(file, its package) of all packages, but what runs on control planes: that is always run."""
        packages = metadata()
        folders = {os.path.relpath(os.path.dirname(p["manifest_path"]), ROOT): p["name"] for p in packages}
        for name in unchanged.files(sorted(folders)):
            owner = max((f for f in folders if name.startswith(f + "/")), key=len)
            if name.endswith(".rs") and not name.startswith("e2e/tests/") and os.path.isfile(os.path.join(ROOT, name)):
                yield name, folders[owner], owner, packages

    def missing(self, name, package, packages, path):
        """Whether a digest of the package lacks this path."""
        known = unchanged.paths(closure(package, packages), packages)
        inside = any(path == k or path.startswith(k + "/") for k in known)
        return [] if inside else [f"{name} reads {path}: add it to READS of {package} (.ci/unchanged.py)"]

    def test_every_path_out_of_a_package_is_in_the_table(self):
        complaints, seen = [], 0
        for name, package, owner, packages in self.sources():
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                text = file.read()
            found = [os.path.join(os.path.dirname(name), path) for path in INCLUDED.findall(text)]
            found += [os.path.join(owner, path) for path in IN_PACKAGE.findall(text)] + IN_ROOT.findall(text)
            for path in [path for path in map(os.path.normpath, found) if path != "."] + BY_HAND.get(name, []):
                seen += 1
                complaints += self.missing(name, package, packages, path)
            if UP.search(text) and name not in BY_HAND:
                complaints.append(f"{name} goes up from its package: say what it reads in BY_HAND (.ci/unchanged_test.py)")
        self.assertEqual(complaints, [])
        self.assertGreater(seen, 40, "the sources are elsewhere, or name paths in another way")

    def test_the_table_has_nothing_that_is_gone(self):
        for path in [*COMMON, *(path for below in READS.values() for path in below), *BY_HAND]:
            self.assertTrue(os.path.exists(os.path.join(ROOT, path)), path)


if __name__ == "__main__":
    unittest.main()
