#!/usr/bin/env python3
"""usage: report_page.py [--check]

Makes src/report/html_page.c, the page of `prof report` as C strings. It is made of three files in
src/report/html: report.html, report.css and report.js. --check writes nothing, and fails if the
file is not current.

Places in report.html:

{{style}}, {{script}}: The other two files.

{{style-hash}}, {{script-hash}}: Their hashes for the page's content security policy.

Other words: html.c fills them."""

import base64
import hashlib
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src/report/html"
TARGET = ROOT / "src/report/html_page.c"
# Bytes of one string: C11 promises 4095.
PIECE = 4000
LINE = 96
# Of the script in the page, so that a person can still read it as a whole.
SCRIPT_LINES_MAX = 800


def squeezed(text):
    """Without indentation, blank lines and lines that are comments alone."""
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//")) + "\n"


def page():
    style = squeezed((SOURCE / "report.css").read_text(encoding="utf-8"))
    script = squeezed((SOURCE / "report.js").read_text(encoding="utf-8"))
    html = squeezed((SOURCE / "report.html").read_text(encoding="utf-8"))
    for text in (style, script):
        if re.search(r"</|<!--", text):
            sys.exit("report_page.py: no '</' or '<!--' in report.css and report.js")
    if script.count("\n") >= SCRIPT_LINES_MAX:
        sys.exit(f"report_page.py: the script must have less than {SCRIPT_LINES_MAX} lines")
    words = {"style": style, "script": script}
    for name, text in list(words.items()):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        words[name + "-hash"] = f"sha256-{digest}"
    return re.split(
        r"\{\{(\w+)\}\}",
        re.sub(r"\{\{(style|script)(-hash)?\}\}", lambda m: words[m[0].strip("{}")], html),
    )


def quoted(text):
    """C string literals of at most LINE columns, as pieces."""
    pieces, line, size = [[]], "", 0
    for letter in text:
        code = {"\n": "\\n", '"': '\\"', "\\": "\\\\", "?": "\\?"}.get(letter)
        if code is None:
            code = letter
            if not " " <= letter <= "~":
                code = "".join(f"\\{byte:03o}" for byte in letter.encode())
        if size + len(letter.encode()) > PIECE:
            pieces[-1].append(line)
            pieces.append([])
            line, size = "", 0
        elif len(line) + len(code) > LINE - 4:
            pieces[-1].append(line)
            line = ""
        line += code
        size += len(letter.encode())
    pieces[-1].append(line)
    return ["\n".join(f'    "{line}"' for line in piece) for piece in pieces]


def source():
    out = []
    for index, part in enumerate(page()):
        out += [f'    "\\001{part}"'] if index % 2 else quoted(part)
    return (
        "/* Made by tools/report_page.py from src/report/html: do not edit. See internal.h. */\n"
        '#include "internal.h"\n\n#include <stddef.h>\n\n/* clang-format off */\n'
        "const char *const prof_i_html_page[] = {\n" + ",\n".join(out) + ",\n    NULL};\n"
        "/* clang-format on */\n"
    )


def main():
    text = source()
    if sys.argv[1:] == ["--check"]:
        if TARGET.read_text(encoding="utf-8") != text:
            sys.exit("src/report/html_page.c is not current: type tools/report_page.py")
    elif sys.argv[1:]:
        sys.exit(__doc__.splitlines()[0])
    else:
        TARGET.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
