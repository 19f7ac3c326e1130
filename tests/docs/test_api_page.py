"""docs/reference/api.md has each public function, status code and loss, and no other."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
HEADERS = {
    path.name: path.read_text(encoding="utf-8") for path in (ROOT / "include/prof").glob("*.h")
}
ENTRY = "prof_backend_entry"  # a plug-in's, so without PROF_API


class ApiPage(unittest.TestCase):
    def first_cells(self, pattern):
        return re.findall(rf"^\| `({pattern})` \|", PAGE, re.MULTILINE)

    def test_it_has_each_public_function_once(self):
        declared = []
        for text in HEADERS.values():
            for declaration in re.findall(r"^PROF_API ([^;{]*?)[;{]", text, re.MULTILINE):
                name = re.search(r"\b(prof_\w+)\s*\(", declaration)
                if name and not name.group(1).startswith("prof_i_"):
                    declared.append(name.group(1))
        self.assertGreater(len(declared), 100)
        self.assertEqual(sorted(self.first_cells(r"prof_\w+")), sorted([*declared, ENTRY]))

    def test_it_has_each_status_code_with_its_value(self):
        listed = re.findall(r"X\((PROF_(?:OK|E_\w+)), (-?\d+),", HEADERS["status.h"])
        shown = re.findall(r"^\| `(PROF_(?:OK|E_\w+))` \| (-?\d+) \|", PAGE, re.MULTILINE)
        self.assertGreater(len(listed), 10)
        self.assertEqual(shown, listed)

    def test_it_has_each_loss_in_order(self):
        losses = HEADERS["profiler.h"].split("#define PROF_LOSS_LIST(X)")[1].split("typedef")[0]
        names = re.findall(r'X\(\w+, "(\w+)",', losses)
        table = PAGE.split("## Losses")[1]
        self.assertEqual(len(names), 16)
        self.assertEqual(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE), names)


if __name__ == "__main__":
    unittest.main()
