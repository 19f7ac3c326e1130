#!/usr/bin/env python3
"""Writes tests/data/minilm-tokens.json: texts that are hard on a tokenizer, with Hugging Face's own
answer for each.

Needed only to make the file again (the model folder is what examples/minilm/fetch-model.sh prints):
    pip install tokenizers && ./make_tokens.py MODEL_FOLDER > ../data/minilm-tokens.json
"""

import json
import random
import sys

from tokenizers import Tokenizer

HAND = [
    "",
    " ",
    "\t\r\n\u3000\u00a0",
    "a",
    "A",
    "hello world",
    "HELLO, WORLD!",
    "don't stop-me now...",
    "$5.00 <b>x</b> ^_^ `~|",
    "a" * 99,
    "a" * 100,
    "a" * 101,
    "\u00e9" * 100,
    "\u00e9" * 101,
    "\ud55c" * 33,
    "\ud55c" * 34,
    "x" * 101 + " y",
    "Na\u00efve caf\u00e9",
    "A\u030angstro\u0308m",
    "\u0130stanbul \u0131",
    "stra\u00dfe STRASSE \u1e9e",
    "\u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2 \u03a9\u039c\u0395\u0393\u0391 \u1f84",
    "\u0401\u043b\u043a\u0430 \u0419\u043e\u0434",
    "Vi\u1ec7t Nam \u1ea4n \u0110\u1ed9",
    "\u01c4 \u01c5 \u01c6 \u0149",
    "\ufb01ne \u2122 \u00bd \u00b2",
    "\ud55c\uad6d\uc5b4 \uac00\ub098",
    "\u304c\u304e\u3050 \u30d1\u30d4\u30d7 \u30ab\u309a",
    "\u6771\u4eac\u90fdTokyo\u5927\u962a",
    "\uf900\u8c48 \u3400 \U00020000",
    "\u05e9\u05c1\u05dc\u05d5\u05dd \ufb2a",
    "\u0645\u0650\u0631\u064e\u062d\u0628\u0627 \u0622\u0623",
    "\u0939\u093f\u0928\u094d\u0926\u0940 \u0929",
    "\u0e44\u0e17\u0e22",
    "\u0531\u0532 \u0561",
    "\u13a0\u13f0 \uab70",
    "\U00010400\U00010428 \U0001e900",
    "zero\u200bwidth soft\u00adhyphen bom\ufeff bidi\u202eabc",
    "bad\ufffdchar c1\u0085next bell\u0007",
    "line\u2028sep\u2029par",
    "private\ue000use \U000f0000",
    "\u2014\u2013\u2018quoted\u2019 \u00a1hola! \u00bfque? \u3002\uff0c\uff01",
    "\u037e \u0387 \u1fef",
    "\U0001f600 emoji \u2764\ufe0f \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "[CLS]",
    "[SEP] in [MASK] the[UNK]middle [PAD]",
    "[cls] [CLS [[SEP]]",
    "[[[[",
    "##ing ##",
    "un##able",
    "\u0301abc \u0301",
    "a\u0301\u0302\u0303b",
    "word " * 300,
    "supercalifragilisticexpialidocious antidisestablishmentarianism",
    "12345678901234567890 3.14159 1e-5",
    "https://example.org/a?b=c&d=e#f",
]


def mixed(rng, vocabulary):
    letters = [
        chr(c)
        for c in [
            *range(33, 127),
            *range(0xA1, 0x250),
            *range(0x370, 0x530),
            *range(0x1E00, 0x2000),
        ]
    ]
    parts = []
    for _ in range(rng.randint(3, 14)):
        kind = rng.random()
        word = rng.choice(vocabulary)
        parts.append(
            word
            if kind < 0.4
            else word.upper()
            if kind < 0.6
            else "".join(rng.choices(letters, k=rng.randint(1, 9)))
        )
        parts.append(rng.choice(["", " ", " ", "\n"]))
    return "".join(parts)


def main(folder):
    tokenizer = Tokenizer.from_file(folder + "/tokenizer.json")
    tokenizer.no_padding()
    tokenizer.enable_truncation(256)
    with open(folder + "/vocab.txt", encoding="utf-8") as file:
        vocabulary = [line.rstrip("\n") for line in file]
    rng = random.Random(7)
    cases = [
        {"text": t, "token_ids": tokenizer.encode(t).ids}
        for t in HAND + [mixed(rng, vocabulary) for _ in range(150)]
    ]
    print(
        '{"made_with": "tokenizers, tokenizer.json of all-MiniLM-L6-v2, cut at 256 tokens", '
        '"cases": ['
    )
    print(",\n".join(json.dumps(case) for case in cases))
    print("]}")


main(sys.argv[1])
