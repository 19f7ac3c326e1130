"""The style check finds what it should."""

import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

CHECK = Path(__file__).resolve().parents[2] / "tools" / "style_check.py"
LONG = " ".join(["a"] * 31) + "."


class StyleCheck(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "tools" / "style").mkdir(parents=True)
        shutil.copy(CHECK, self.root / "tools")
        (self.root / "tools" / "style" / "phrases.txt").write_text(
            "\\bnobody's\\b\tname the owner\n"
        )
        subprocess.check_call(["git", "init", "-q", str(self.root)])

    def check(self, *arguments):
        subprocess.check_call(["git", "-C", str(self.root), "add", "."])
        command = [sys.executable, str(self.root / "tools" / "style_check.py"), *arguments]
        done = subprocess.run(command, cwd=self.root, stdout=subprocess.PIPE, text=True)
        return done.returncode, done.stdout

    def test_a_clean_tree_passes(self):
        (self.root / "a.c").write_text("/* Counts records. */\nint a;\n")
        self.assertEqual(self.check()[0], 0)

    def test_each_rule_finds_its_fault(self):
        files = {
            "columns.md": ("x" * 101, "columns"),
            "text.md": (f"# Head\n\n{LONG}\n", "sentence"),
            "cell.md": (f"| a | {LONG} |\n", "sentence"),
            "block.c": (f"/* {LONG} */\n", "sentence"),
            "lines.c": (
                "// " + LONG.replace("a a a", "a\n// a a") + "\n",
                "sentence",
            ),
            "phrase.h": ("int a; // It is nobody's.\n", "phrase"),
            "doc.py": (f'"""{LONG}"""\n', "sentence"),
            "note.py": ("a = 1  # nobody's\n", "phrase"),
            "heading.md": ("# It is nobody's\n", "phrase"),
            "below.md": (f"- an item\n\n    {LONG}\n", "sentence"),
            "trailing.sh": ("true # It is nobody's.\n", "phrase"),
            "run.sh": ("# It is nobody's.\n", "phrase"),
        }
        for name, (text, rule) in files.items():
            with self.subTest(name):
                (self.root / name).write_text(text)
                status, output = self.check(name)
                self.assertEqual(status, 1)
                self.assertIn(f": {rule}: ", output)

    def test_messages_of_the_product_are_prose(self):
        half = " ".join(["a"] * 16)
        long_c = f'char *a = "{half} %s " PRIu64\n    " {half}";\n'
        files = {
            "src/joined.c": (long_c, "sentence"),
            "src/phrase.c": ('f("It is nobody\'s.");\n', "phrase"),
            "bindings/python/prof/joined.py": (
                f'a = (\n    "{half} "\n    f"{{b}} {half}"\n)\n',
                "sentence",
            ),
            "bindings/python/prof/phrase.py": ('a = "It is nobody\'s."\n', "phrase"),
        }
        for name, (text, rule) in files.items():
            with self.subTest(name):
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                (self.root / name).write_text(text)
                status, output = self.check(name)
                self.assertEqual(status, 1)
                self.assertIn(f": {rule}: ", output)
        (self.root / "src" / "joined.c").write_text(long_c.replace("%s ", "%s.\\n"))
        self.assertEqual(self.check("src/joined.c")[0], 0)

    def test_code_is_not_prose(self):
        (self.root / "a.md").write_text(f"```\n{LONG}\nnobody's\n```\n")
        (self.root / "a.c").write_text('char *a = "/* nobody\'s */";\n')
        (self.root / "a.py").write_text('a = "nobody\'s"\n')
        self.assertEqual(self.check(), (0, "style: 0 columns, 0 sentence, 0 phrase, 0 function\n"))

    def test_functions_of_the_product_have_at_most_60_lines(self):
        c = "static int a(int b,\n    int c) {  /* C */\n" + "  f();\n" * 57 + "}\n"
        python = "def a():\n" + "    f()\n" * 59
        files = {
            "src/a.c": (c, "  f();\n"),
            "src/a.h": ("int a(void);\nstruct a {\n  int b;\n};\n" + c, "  f();\n"),
            "inject/a.cpp": ('extern "C" {\n' + c + "}\n", "  f();\n"),
            "tools/a.c": ("int a[] = {\n" + "  1,\n" * 99 + "};\n" + c, "  f();\n"),
            "bindings/a.py": (python, "    f()\n"),
            "bindings/b.py": ("class A:\n" + textwrap.indent(python, "    "), "        f()\n"),
        }
        for name, (text, line) in files.items():
            with self.subTest(name):
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                (self.root / name).write_text(text)
                self.assertEqual(self.check(name)[0], 0)
                (self.root / name).write_text(text.replace(line, line + line, 1))
                status, output = self.check(name)
                self.assertEqual(status, 1)
                self.assertIn(": function: 61 lines (at most 60): a()", output)
        (self.root / "a.c").write_text(c.replace("  f();\n", "  f();\n" * 2))
        self.assertEqual(self.check("a.c")[0], 0)

    def test_a_row_of_a_markdown_table_may_be_longer(self):
        long_row, reason = f"| a | {'x' * 101} |", "y" * 99
        (self.root / "a.md").write_text(f"{long_row}\n<!-- snippet: none: {reason} -->\n")
        self.assertEqual(self.check()[0], 0)
        (self.root / "a.sh").write_text(f"# {long_row}\n")
        self.assertEqual(self.check()[0], 1)

    def test_an_allowed_line_needs_a_reason(self):
        (self.root / "a.md").write_text("wide" * 26 + "\n")
        allowed = self.root / "tools" / "style" / "allowed.txt"
        allowed.write_text("a.md columns widewide\tIt is a name.\n")
        self.assertEqual(self.check()[0], 0)
        allowed.write_text("a.md columns widewide\n")
        self.assertEqual(self.check()[0], 1)


if __name__ == "__main__":
    unittest.main()
