#!/usr/bin/env python3
"""Writes unicode_data.h: what BERT's uncased normaliser does to each code point.

The facts come from Hugging Face's own normaliser and pre-tokeniser, one code point at a time, so
the C tokenizer cannot drift from them. Needed only to make the file again:
    pip install tokenizers && ./make-unicode-data.py > unicode_data.h
    clang-format -i unicode_data.h
"""

import unicodedata

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

HEAD = """\
/* What BERT's uncased normaliser does to single code points, as tables. Made by
   make-unicode-data.py out of Hugging Face's tokenizers; read by unicode.c alone. Hangul syllables
   are not here: unicode.c decomposes them by arithmetic. Nor are {missing} code points that become
   two or more (two-part Indic vowels, musical notes) or are ideographs of the compatibility
   supplement: those pass through unchanged. SPDX-License-Identifier: MIT */
#ifndef MINILM_UNICODE_DATA_H
#define MINILM_UNICODE_DATA_H

#include <stdint.h>
#include <uchar.h>

typedef struct code_range {{
  uint32_t first, last;
}} code_range;

/* Code points first, first + stride, ..., last move by delta: capitals beside small letters have
   stride 2. */
typedef struct fold_range {{
  uint32_t first, last;
  int32_t stride, delta;
}} fold_range;

/* The code point first + i becomes text[i]; a space means that it stays. */
typedef struct fold_row {{
  uint32_t first, count;
  const char16_t *text;
}} fold_row;

"""


def ask():
    normaliser = BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True
    )
    splitter = BertPreTokenizer()
    points = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    becomes = {c: normaliser.normalize_str(chr(c)) for c in points}
    punctuation = [c for c in points if len(splitter.pre_tokenize_str("a" + chr(c) + "a")) == 3]
    return becomes, punctuation


def ranges(points):
    out = []
    for c in sorted(points):
        if out and out[-1][1] == c - 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def constant_shifts(fold):
    """Runs of 8 and more that move by one distance (stride 1, or 2 where capitals and small letters
    alternate)."""
    runs, left = [], dict(fold)
    for first in sorted(fold):
        for stride in (1, 2):
            count = 0
            while (
                left.get(first + count * stride, -1) - first - count * stride == fold[first] - first
            ):
                count += 1
            if count >= 8:
                runs.append((first, first + (count - 1) * stride, stride, fold[first] - first))
                for k in range(count):
                    del left[first + k * stride]
                break
    return runs, left


def rows(fold):
    """What remains, as rows of text: position is the code point, a space means unchanged."""
    out = []
    for c in sorted(fold):
        if out and c - out[-1][0] < 64 and c - out[-1][1] <= 16:
            out[-1][1] = c
        else:
            out.append([c, c])
    return [(a, [fold.get(c, 0x20) for c in range(a, b + 1)]) for a, b in out]


def literal(points):
    # Right-to-left letters are escaped so that an editor does not turn the line around.
    return "".join(
        f"\\u{c:04x}" if unicodedata.bidirectional(chr(c)) in ("R", "AL") else chr(c)
        for c in points
    )


def table(kind, name, cells, per_line):
    lines = [", ".join(cells[i : i + per_line]) for i in range(0, len(cells), per_line)]
    print(f"\nstatic const {kind} {name}[] = {{\n  " + ",\n  ".join(lines) + ",\n};")


def main():
    becomes, punctuation = ask()
    dropped = [c for c in becomes if becomes[c] == ""]
    blank = [c for c in becomes if becomes[c] == " "]
    ideograph = {c for c in becomes if len(becomes[c]) > 1 and becomes[c][0] == " "}
    fold, missing = {}, 0
    for c, text in becomes.items():
        text = text.strip() if c in ideograph else text
        if text in ("", " ", chr(c)) or 0xAC00 <= c <= 0xD7A3:
            continue
        if len(text) == 1 and (c > 0xFFFF or ord(text) <= 0xFFFF) and not 0x2F800 <= c <= 0x2FA1F:
            fold[c] = ord(text)
        else:
            missing += 1
    shifts, rest = constant_shifts(fold)
    astral = sorted(c for c in rest if c > 0xFFFF)
    shifts += [(c, c, 1, rest.pop(c) - c) for c in astral]
    print(HEAD.format(missing=missing), end="")
    pair = [
        [f"{{0x{a:04x}, 0x{b:04x}}}" for a, b in ranges(x)]
        for x in (blank, dropped, ideograph, punctuation)
    ]
    for name, cells in zip(("blank", "dropped", "ideograph", "punctuation"), pair):
        table("code_range", name + "_ranges", cells, 6)
    table(
        "fold_range",
        "fold_ranges",
        [f"{{0x{a:04x}, 0x{b:04x}, {s}, {d}}}" for a, b, s, d in shifts],
        4,
    )
    table(
        "fold_row",
        "fold_rows",
        [f'{{0x{a:04x}, {len(t)}, u"{literal(t)}"}}' for a, t in rows(rest)],
        1,
    )
    print("\n#endif")


main()
