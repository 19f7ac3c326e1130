"""Relative links of the documentation lead to files and headings that exist."""

import re
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def without_code(text):
    text = re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", lambda code: code.group(0).replace("](", "] ("), text)


def anchors(text):
    """The ids that GitHub gives the headings of a page."""
    found = {}
    for heading in re.findall(r"^#+ (.*)$", without_code(text), re.MULTILINE):
        name = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip()).lower()
        name = re.sub(r"[^\w\- ]", "", name).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {
        name if n == 0 else f"{name}-{n}" for name, count in found.items() for n in range(count + 1)
    }


def broken_links(root, pages):
    for page in pages:
        for link in LINK.findall(without_code((root / page).read_text(encoding="utf-8"))):
            if re.match(r"[a-z]+:", link):
                continue
            path, _, heading = link.partition("#")
            target = (root / page).parent / path if path else root / page
            if not target.exists():
                yield f"{page}: {link}: no such file"
            elif heading and target.suffix == ".md":
                if heading not in anchors(target.read_text(encoding="utf-8")):
                    yield f"{page}: {link}: no such heading"


class Links(unittest.TestCase):
    def test_each_link_leads_somewhere(self):
        command = ["git", "ls-files", "*.md", ":!bench/results"]
        pages = subprocess.check_output(command, cwd=ROOT, text=True).split()
        self.assertGreater(len(pages), 5)
        self.assertEqual(list(broken_links(ROOT, pages)), [])

    def test_a_broken_link_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "a.md"
            page.write_text(
                "# A `b` c\n[x](#a-b-c) [y](b.md) [z](a.md#d) `[i](j)`\n```\n[k](l)\n```\n"
            )
            found = list(broken_links(Path(folder), ["a.md"]))
        self.assertEqual(found, ["a.md: b.md: no such file", "a.md: a.md#d: no such heading"])


if __name__ == "__main__":
    unittest.main()
