"""Tables as torch.profiler and prof print them, found in a text and cut into cells."""

import re


class Table:
    """Columns by their places under the first rule; rows as dictionaries; continuation rows
    apart."""

    def __init__(self, lines):
        spans = [m.span() for m in re.finditer("-+", lines[0])]
        cut = lambda line: [line[a:b].strip() for a, b in spans]  # noqa: E731
        end = lines.index(lines[0], 3)
        assert lines[0] == lines[2] == lines[end], lines[:3]
        self.columns, self.footer = cut(lines[1]), lines[end + 1]
        rows = [cut(line) for line in lines[3:end]]
        self.rows = [dict(zip(self.columns, row)) for row in rows if row[0]]
        self.more = [row for row in rows if not row[0]]
        self.widths = [b - a for a, b in spans]
        self.lengths = {len(line) for line in lines[: end + 1]}


def tables(text):
    lines, found, at = text.splitlines(), [], 0
    while at < len(lines):
        if re.fullmatch("(-+  )+", lines[at]):
            end = lines.index(lines[at], at + 3) + 2
            found.append(Table(lines[at:end]))
            at = end
        else:
            at += 1
    return found
