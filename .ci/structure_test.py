"""The check of structure reads Rust as the compiler does, and its ceilings only fall."""

import os
import tempfile
import unittest

import structure
from command import ROOT
from modules import Crate, circles
from rust_source import Source, blank, tree


def paths(text):
    return [("::".join(path), name) for path, name in tree(text)]


def arrows(files):
    """Arrows between the files of a crate, without their endings."""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, files)
        short = lambda file: os.path.relpath(file, folder).removesuffix(".rs")
        found = Crate(os.path.join(folder, "lib.rs")).arrows()
        return {short(file): {short(needed) for needed in needs} for file, needs in found.items() if needs}


def write(folder, files):
    for name, text in files.items():
        path = os.path.join(folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def measured(**numbers):
    found = structure.Structure()
    for name, places in numbers.items():
        found.set(name, len(places), places)
    return found


class Reading(unittest.TestCase):
    def test_texts_and_comments_are_no_code(self):
        code, comments = blank('let a = "// {"; // How\nlet b = r#"" fn x() {"#; let c = \'"\'; /* fn y()\n */ let d: &\'a str = b"\\"{";')
        self.assertEqual(code.split(), "let a = ; let b = ; let c = ; let d: &'a str = ;".split())
        self.assertEqual([(line, text[:6]) for line, text in comments], [(1, "// How"), (2, "/* fn ")])
        self.assertEqual(code.count("\n"), 2)

    def test_an_import_names_each_path_and_what_it_is_called(self):
        self.assertEqual(paths("crate::a"), [("crate::a", "a")])
        self.assertEqual(
            paths("crate::{a::{self, B as C, d::*}, e}"),
            [("crate::a", "a"), ("crate::a::B", "C"), ("crate::a::d::*", "*"), ("crate::e", "e")],
        )

    def test_a_function_is_as_long_as_its_body(self):
        source = Source("fn a(x: [u8; 4])\nwhere\n{\n  // }\n  b()\n}\ntrait T { fn c(); }\n#[tokio::test]\n#[x]\nasync fn d() {}\n")
        found = [(function.name, function.line, function.lines, function.is_test) for _, function in source.functions()]
        self.assertEqual(found, [("a", 1, 6, False), ("d", 10, 1, True)])

    def test_comments_below_each_other_are_one(self):
        comments = blank("/// How\n/// What\nfn a() {} // Who\n\n// Why\n//! When\n")[1]
        self.assertEqual([text for _, text in structure.blocks(comments)], ["How", "Who", "Why", "When"])
        self.assertTrue(structure.QUESTION.match("Whether it is"))
        self.assertFalse(structure.QUESTION.match("However it is"))


class Modules(unittest.TestCase):
    def test_imports_and_paths_in_code_are_arrows(self):
        found = arrows({
            "lib.rs": "mod a; mod b; mod c; mod d;",
            "a.rs": "use crate::b::B; fn f() { crate::c::g(); }",
            "b.rs": "use super::d; struct B; fn h() { d::i() }",
            "c.rs": "pub fn g() {}",
            "d.rs": "//! [`crate::a`]\nuse std::c::g; pub fn i() {}",
        })
        self.assertEqual(found, {"a": {"b", "c"}, "b": {"d"}})

    def test_a_name_passed_on_is_where_it_is_made(self):
        found = arrows({
            "lib.rs": "mod a; mod b;",
            "a.rs": "mod inner; pub use inner::Thing; pub use crate::b::*;",
            "a/inner.rs": "pub struct Thing;",
            "b.rs": "use crate::a::Thing; use crate::a::Own as Mine; pub struct Own;",
        })
        self.assertEqual(found, {"b": {"a/inner"}})

    def test_parts_of_a_module_are_no_arrows_of_it(self):
        found = arrows({
            "lib.rs": "mod a;", "a.rs": "mod part; fn f() { part::g() } const ONE: u8 = 1;", "a/part.rs": "use super::ONE; pub fn g() {}",
        })
        self.assertEqual(found, {"a/part": {"a"}})

    def test_tests_are_left_out(self):
        found = arrows({
            "lib.rs": "mod a; mod b; #[cfg(test)] mod c;",
            "a.rs": "#[cfg(test)]\nmod tests { use crate::b::B; }\n#[cfg(test)]\nuse crate::b::{B};",
            "b.rs": "use crate::a::A; struct B;",
            "c.rs": "use crate::b::B;",
        })
        self.assertEqual(found, {"b": {"a"}})

    def test_circles_are_told_apart_from_lines(self):
        found = circles({"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}})
        self.assertEqual(found, [{"a", "b", "c"}, {"d", "e"}, {"f"}])


class Ceilings(unittest.TestCase):
    def test_growth_is_said_with_what_is_new(self):
        above, below = structure.judge(measured(long=["a", "b"]), {"long": 1}, lambda: measured(long=["a"]))
        self.assertEqual((above, below), (["long: 2, the ceiling is 1. New or in it: b."], []))

    def test_all_places_are_named_where_nothing_earlier_is_known(self):
        above, _ = structure.judge(measured(long=list("abcdefghijklmn")), {"long": 1}, lambda: None)
        self.assertTrue(above[0].endswith("a, b, c, d, e, f, g, h, i, j, k, l, and 2 more."), above)

    def test_a_ceiling_that_is_too_high_is_refused_with_the_command(self):
        above, below = structure.judge(measured(long=["a"]), {"long": 2, "gone": 3}, self.fail)
        self.assertEqual(above, [])
        self.assertIn("lower the ceiling to 1", below[0])
        self.assertTrue(all(structure.WRITE in sentence for sentence in below) and len(below) == 2, below)

    def test_no_ceiling_is_raised(self):
        self.assertEqual(structure.lowered(measured(a=["x"], b=["x", "y"], new=[]), {"a": 2, "b": 1, "gone": 1}), {"a": 1, "b": 1, "new": 0})

    def test_a_workspace_is_measured_with_its_places(self):
        long_name = "a" * 71
        with tempfile.TemporaryDirectory() as folder:
            write(folder, {
                "Cargo.toml": '[workspace]\nmembers = ["x"]\n',
                "x/src/lib.rs": "mod a; mod b; // What\n// more\nfn f() {\n" + "\n" * 60 + "}\n// It is.\n",
                "x/src/a.rs": "use crate::b::B; struct A;",
                "x/src/b.rs": f"use crate::a::A; struct B;\n#[cfg(test)] mod tests {{ #[test] fn {long_name}() {{}} }}",
                "x/tests/t.rs": f"#[test] fn {long_name}b() {{}} fn {long_name}() {{}}",
            })
            found = structure.measure(folder)
        self.assertEqual(list(found.numbers.values()), [2, 3, 1, 2, 50])
        self.assertEqual(found.places["circle of x"], ["x/src/a.rs", "x/src/b.rs"])
        self.assertEqual(found.places["functions over 60 lines"], ["f (x/src/lib.rs)"])

    def test_nothing_in_this_repository_is_above_its_ceiling(self):
        above, _ = structure.judge(structure.measure(ROOT), structure.read(), lambda: structure.before(ROOT))
        self.assertEqual(above, [])


if __name__ == "__main__":
    unittest.main()
