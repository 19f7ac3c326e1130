#!/usr/bin/env python3
"""Checks how prof's text is written: docs, comments, docstrings, messages of the product. And how
long its functions are.

usage: tools/style_check.py [FILE...]

Rules: at most 100 columns, except in rows of Markdown tables; at most 30 words in a sentence; no
phrase of tools/style/phrases.txt.
A function of the product has at most 60 lines.
A line that must stay as it is has a row in tools/style/allowed.txt, with the reason.

Prints each finding, then one line with the sums. The exit status is 1 if there is a finding.
"""

import argparse
import ast
import io
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

COLUMNS = 100
WORDS = 30
FUNCTION_LINES = 60
RULES = ("columns", "sentence", "phrase", "function")
TEXT_FILES = {".c", ".h", ".cpp", ".hpp", ".py", ".sh", ".bash", ".cmake", ".md", ".txt", ".in"}
NO_ENDING = {"Makefile", "run", "gpu-check", "CMakeLists.txt"}
PARTS_OF_DATA = ("tests/data/", "tests/embed/old-header/", "bench/results/", "tools/style/")
C_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
TRAILING_COMMENT = re.compile(r"""(?:[^'"#]|'[^']*'|"[^"]*")*\s#\s+(.*)""")
LONG_ADDRESS = re.compile(r"https?://\S{60,}")
UNBREAKABLE_OF_MARKDOWN = re.compile(rf"^ *\|.*\| *$|^<!-- snippet: .*-->$|{LONG_ADDRESS.pattern}")
WITH_MESSAGES = ("src/", "inject/", "tools/", "include/", "bindings/python/prof/")
WITH_SHORT_FUNCTIONS = ("src/", "inject/", "tools/", "bindings/")
# A definition begins in the first column. "{" ends a line, or a comment follows. "}" is in the
# first column. It is no preprocessor line, type, array or namespace.
C_FUNCTION = re.compile(
    r"^(?!(?:typedef|struct|enum|union|namespace|extern \"C\")\b[^(]*\{)"
    r"[A-Za-z_][^;{}=#]*\([^;{}]*\)[^;{}()=#]*\{(?: */[/*][^\n]*)?\n.*?^\}",
    re.DOTALL | re.MULTILINE,
)
CODE_IN_TEXT = re.compile(r"[{}<>=]|\b(?:SELECT|INSERT|CREATE|ALTER|coalesce)\b")
BETWEEN_LITERALS = re.compile(r"\s*(?:[A-Z]\w*\s*)?")
FORMAT = re.compile(r"%[-+ #0-9.*]*(?:hh|h|ll|l|z|j|t)?[a-zA-Z]")
END_OF_SENTENCE = re.compile(r"(?<=[.!?:])[)\"']?\s+(?=[\"'(`]?[A-Z0-9`\"'(])|\n\s*\n")


def files_of_the_tree(root):
    """Names of the files that git knows and that hold text of ours."""
    names = subprocess.check_output(["git", "ls-files"], cwd=root, text=True).splitlines()
    for name in names:
        path = Path(name)
        if name.startswith(PARTS_OF_DATA) or (root / name).is_symlink():
            continue
        if path.suffix in TEXT_FILES or path.name in NO_ENDING:
            yield name


def comments_of_c(text):
    """(line, text) of each comment; // lines that follow each other are one."""
    found = []
    for match in C_COMMENT.finditer(text):
        word = match.group(0)
        if word[0] != "/":
            continue
        line = text.count("\n", 0, match.start()) + 1
        body = re.sub(r"^\s*(//+|/\*+|\*+/?)!?<?", "", word, flags=re.MULTILINE)
        body = body.removesuffix("*/")
        if word.startswith("//") and found and found[-1][2] == line - 1:
            found[-1] = (found[-1][0], found[-1][1] + "\n" + body, line)
        else:
            found.append((line, body, line if word.startswith("//") else -1))
    return [(line, body) for line, body, _ in found]


def plain_message(literal):
    """The words that a user reads: an inserted value counts as one."""
    text = literal.replace("\\n", "\n").replace('\\"', '"')
    text = re.sub(r"(?<!\w)--?[a-z][\w-]*", "", text)  # options
    return FORMAT.sub("X", text).replace("\n", "\n\n")


def messages_of_c(text):
    """(line, text) of each string; literals that the compiler joins are one."""
    found = []
    for match in C_COMMENT.finditer(text):
        word = match.group(0)
        if word[0] != '"':
            continue
        body = plain_message(word[1:-1])
        if found and BETWEEN_LITERALS.fullmatch(text, found[-1][2], match.start()):
            found[-1] = (found[-1][0], found[-1][1] + body, match.end())
        else:
            found.append((text.count("\n", 0, match.start()) + 1, body, match.end()))
    return [(line, body) for line, body, _ in found if not CODE_IN_TEXT.search(body)]


class Messages(ast.NodeVisitor):
    """(line, text) of each string that is no docstring."""

    def __init__(self):
        self.found = []

    def visit_Expr(self, node):
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Constant(self, node):
        if isinstance(node.value, str):
            self.found.append((node.lineno, plain_message(node.value)))

    def visit_JoinedStr(self, node):
        parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        self.found.append((node.lineno, plain_message("".join(parts))))


def messages_of_python(text):
    try:
        messages = Messages()
        messages.visit(ast.parse(text))
    except SyntaxError:
        return []
    return [(line, body) for line, body in messages.found if not CODE_IN_TEXT.search(body)]


def comments_of_python(text):
    """(line, text) of each comment and docstring."""
    found = []
    before = tokenize.NEWLINE
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                body = token.string.lstrip("#")
                if found and found[-1][2] == token.start[0] - 1:
                    found[-1] = (found[-1][0], found[-1][1] + "\n" + body, token.start[0])
                else:
                    found.append((token.start[0], body, token.start[0]))
            elif token.type == tokenize.STRING and before in (tokenize.NEWLINE, tokenize.INDENT):
                found.append((token.start[0], token.string.strip("rb\"'"), -1))
            if token.type not in (tokenize.COMMENT, tokenize.NL):
                before = token.type
    except (tokenize.TokenError, IndentationError):
        pass
    return [(line, body) for line, body, _ in found]


def comments_of_shell(text):
    """(line, text) of each comment; lines of comments that follow each other are one."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r"\s*#+(?!!)(.*)", line)
        trailing = TRAILING_COMMENT.match(line)
        if not match:
            if trailing:
                found.append((number, trailing.group(1), -1))
            continue
        if found and found[-1][2] == number - 1:
            found[-1] = (found[-1][0], found[-1][1] + "\n" + match.group(1), number)
        else:
            found.append((number, match.group(1), number))
    return [(line, body) for line, body, _ in found]


def prose_of_markdown(text):
    """(line, text) of each heading, paragraph, item and cell; code is left out."""
    found = []
    code = False
    in_item = False  # an indented paragraph below an item is prose, elsewhere it is code
    block = []

    def close():
        if block:
            found.append((block[0][0], "\n".join(line for _, line in block)))
            block.clear()

    for number, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*(```|~~~)", line):
            code = not code
            close()
        elif code or line.startswith("<!--") and not block:
            continue
        elif line.startswith("    ") and not block and not in_item:
            continue
        elif re.match(r"#+\s", line):
            close()
            in_item = False
            found.append((number, line.lstrip("#")))
        elif not line.strip():
            close()
        elif line.lstrip().startswith("|"):
            close()
            cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
            found.extend((number, cell) for cell in cells if re.search(r"[a-z]", cell))
        else:
            if re.match(r"\s*([-*+]|\d+[.)])\s", line):
                close()
                in_item = True
            elif not block and not line.startswith(" "):
                in_item = False
            block.append((number, re.sub(r"^\s*([-*+>]|\d+[.)])\s+", "", line)))
    close()
    return found


def prose_of(name, text):
    suffix = Path(name).suffix
    with_messages = name.startswith(WITH_MESSAGES)
    if suffix == ".md":
        return prose_of_markdown(text)
    if suffix in (".c", ".h", ".cpp", ".hpp"):
        return comments_of_c(text) + (messages_of_c(text) if with_messages else [])
    if suffix == ".py":
        return comments_of_python(text) + (messages_of_python(text) if with_messages else [])
    return comments_of_shell(text)


def functions_of_c(text):
    """(first line, lines, name) of each function."""
    for match in C_FUNCTION.finditer(text):
        name = re.search(r"(\w+)\(", match.group(0)).group(1)
        first = text.count("\n", 0, match.start()) + 1
        yield first, match.group(0).count("\n") + 1, name


def functions_of_python(text):
    """(first line, lines, name) of each function, those inside of functions and classes too."""
    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno, node.end_lineno - node.lineno + 1, node.name


def functions_of(name, text):
    if not name.startswith(WITH_SHORT_FUNCTIONS):
        return []
    if name.endswith((".c", ".h", ".cpp", ".hpp")):
        return functions_of_c(text)
    return functions_of_python(text) if name.endswith(".py") else []


def plain(text):
    """The words of a text: code in backticks and targets of links count as one word."""
    text = re.sub(r"`[^`]*`", "code", text)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"https?://\S+", "link", text)


def words_of(sentence):
    return re.findall(r"[A-Za-z][\w'’-]*", sentence)


def findings(name, text, phrases):
    """(line, rule, what) of each thing that is not as the rules want it."""
    unbreakable = UNBREAKABLE_OF_MARKDOWN if name.endswith(".md") else LONG_ADDRESS
    for number, line in enumerate(text.splitlines(), 1):
        if len(line) > COLUMNS and not unbreakable.search(line):
            yield number, "columns", f"{len(line)} columns (at most {COLUMNS})"
    for start, count, function in functions_of(name, text):
        if count > FUNCTION_LINES:
            yield start, "function", f"{count} lines (at most {FUNCTION_LINES}): {function}()"
    for start, body in prose_of(name, text):
        for sentence in END_OF_SENTENCE.split(plain(body)):
            count = len(words_of(sentence or ""))
            if count > WORDS:
                first = " ".join(sentence.split()[:6])
                yield start, "sentence", f"{count} words (at most {WORDS}): {first} ..."
        flat = re.sub(r"\s+", " ", plain(body))
        for phrase, instead in phrases:
            match = phrase.search(flat)
            if match:
                yield start, "phrase", f"'{match.group(0)}': {instead}"


def read_phrases(path):
    """Lines: a regular expression, a tab, what to write instead."""
    rows = []
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, _, instead = line.partition("\t")
            rows.append((re.compile(pattern, re.IGNORECASE), instead.strip()))
    return rows


def read_allowed(path):
    """Lines: file, rule, the first words of the finding's line, a tab, the reason."""
    rows = []
    if path.is_file():
        for line in path.read_text().splitlines():
            if line.strip() and not line.startswith("#"):
                where, _, reason = line.partition("\t")
                name, rule, start = where.split(" ", 2)
                if not reason.strip():
                    sys.exit(f"{path}: a line without a reason: {line}")
                rows.append((name, rule, start))
    return rows


def main():
    root = Path(__file__).resolve().parent.parent
    style = root / "tools" / "style"
    parser = argparse.ArgumentParser(
        description="Checks how prof's text is written, and how long its functions are."
    )
    parser.add_argument("files", nargs="*", help="the files to look at (default: all)")
    options = parser.parse_args()
    phrases = read_phrases(style / "phrases.txt")
    allowed = read_allowed(style / "allowed.txt")
    names = [os.path.relpath(Path(f).resolve(), root) for f in options.files]
    everything = set(files_of_the_tree(root))
    seen = Counter()
    for name in names or sorted(everything):
        if name not in everything:
            continue
        text = (root / name).read_text(encoding="utf-8", errors="replace")
        lines = text.splitlines()
        for number, rule, what in findings(name, text, phrases):
            line = lines[number - 1].strip()
            if any(a == name and r == rule and line.startswith(s) for a, r, s in allowed):
                continue
            seen[rule] += 1
            print(f"{name}:{number}: {rule}: {what}")
    print("style: " + ", ".join(f"{seen[rule]} {rule}" for rule in RULES))
    return 1 if seen else 0


if __name__ == "__main__":
    sys.exit(main())
