#!/usr/bin/env python3
"""Sentences in, embeddings out: a runtime in C (libminilm.so, embed.h) called from Python through
ctypes, and profiled from there. Python's scopes, the runtime's operators and its memory stand in
one table and one trace.

    PYTHONPATH=bindings/python python3 examples/minilm/minilm.py "A sentence" "another one"

The first half is the runtime's face in Python, the second a program that uses it under prof.
Neither tells prof of the other: libminilm.so links libprof.so.0, and `import prof` uses the copy
that is in the process."""

from __future__ import annotations

import argparse
import ctypes
import heapq
import os
import sys
from operator import mul
from typing import Any, List, NamedTuple, Optional, Sequence

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

# ---- the runtime's face: examples/minilm/embed.h ----


class _Failure(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * 512)]


class _TextSpan(ctypes.Structure):
    _fields_ = [("data", ctypes.c_char_p), ("bytes", ctypes.c_size_t)]


class Memory(ctypes.Structure):
    """pool_statistics of pool.h: the pool's own account."""

    _fields_ = [
        (name, ctypes.c_uint64)
        for name in (
            "used_bytes",
            "used_peak_bytes",
            "reserved_bytes",
            "reserved_peak_bytes",
            "request_count",
            "release_count",
            "reserve_count",
            "refused_count",
        )
    ]


class MinilmError(Exception):
    """The runtime, or its library, refused; the text says why."""


def load(path: Optional[str] = None) -> ctypes.CDLL:
    """libminilm.so: of this path, of $MINILM_LIBRARY, or as tools/build.sh leaves it. MinilmError
    when there is none. libprof.so.0 comes with it, so before prof is first used is the time."""
    told = path or os.environ.get("MINILM_LIBRARY")
    places = (
        [told]
        if told
        else [
            os.path.join(ROOT, "build", preset, "examples", "libminilm.so")
            for preset in ("release", "dev")
        ]
    )
    found = next((place for place in places if os.path.exists(place)), None)
    if found is None:
        raise MinilmError(
            f"there is no {' and no '.join(places)}\n"
            f"  tools/build.sh release minilm builds it; it needs libcjson-dev and libopenblas-dev"
        )
    try:
        library = ctypes.CDLL(found)
        model, failure = ctypes.c_void_p, ctypes.POINTER(_Failure)
        for name, result, *parameters in (
            (
                "minilm_open",
                ctypes.c_int,
                ctypes.c_char_p,
                ctypes.c_char_p,
                ctypes.POINTER(model),
                failure,
            ),
            ("minilm_close", None, model),
            ("minilm_width", ctypes.c_int64, model),
            (
                "minilm_embed",
                ctypes.c_int,
                model,
                ctypes.POINTER(_TextSpan),
                ctypes.c_int64,
                ctypes.POINTER(ctypes.c_void_p),
                failure,
            ),
            ("minilm_release", None, model, ctypes.c_void_p),
            ("minilm_memory_get", None, model, ctypes.POINTER(Memory)),
        ):
            function = getattr(library, name)
            function.restype, function.argtypes = result, parameters
    except (OSError, AttributeError) as e:
        raise MinilmError(f"{found} cannot be used: {e}") from None
    return library


class Embeddings(Sequence[List[float]]):
    """A row of floats for each sentence, in the runtime's memory until close(), or until nobody has
    them any more."""

    def __init__(self, model: "Minilm", address: int, count: int) -> None:
        self._model, self._address = model, address
        self._rows = (ctypes.c_float * model.width * count).from_address(address)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        """A copy. ValueError when they, or their model, are closed."""
        if not self._address or not self._model.is_open:
            raise ValueError("the embeddings are closed")
        return (
            [list(row) for row in self._rows[index]]
            if isinstance(index, slice)
            else list(self._rows[index])
        )

    def close(self) -> None:
        """Gives the memory back. A second time does nothing."""
        address, self._address = self._address, 0
        if address and self._model.is_open:
            self._model._library.minilm_release(self._model._pointer, address)

    __del__ = close


class Minilm:
    """A model. Any number of threads may embed with it at once: ctypes gives up the GIL meanwhile.
    Closed by with, by close(), or when nobody has it any more."""

    def __init__(
        self,
        folder: Optional[str] = None,
        library: Optional[ctypes.CDLL] = None,
        device: str = "host",
    ) -> None:
        """folder: what fetch-model.sh prints; None: where it puts it. library: what load() gave.
        device: who computes, "host", "opencl", "cuda" or "hip". MinilmError."""
        self._pointer = ctypes.c_void_p()
        self._library = library or load()
        why = _Failure()
        if (
            self._library.minilm_open(
                None if folder is None else os.fsencode(folder),
                device.encode(),
                ctypes.byref(self._pointer),
                ctypes.byref(why),
            )
            != 0
        ):
            text = why.text.decode(errors="replace")
            raise MinilmError(
                text
                + (
                    "\n  examples/minilm/fetch-model.sh fetches it and prints its folder"
                    if text.startswith("no model")
                    else ""
                )
            )
        self.width: int = self._library.minilm_width(self._pointer)

    @property
    def is_open(self) -> bool:
        return bool(self._pointer)

    def embed(self, sentences: Sequence[str]) -> Embeddings:
        """An embedding of length 1 for each sentence. TypeError for what is no sequence of str,
        ValueError for none at all, MinilmError when the runtime refuses."""
        if isinstance(sentences, (str, bytes)) or not all(isinstance(s, str) for s in sentences):
            raise TypeError(f"embed() takes a sequence of str, not {sentences!r}")
        if not sentences:
            raise ValueError("there are no sentences to embed")
        if not self.is_open:
            raise ValueError("the model is closed")
        raw = [sentence.encode("utf-8", "replace") for sentence in sentences]
        texts = (_TextSpan * len(raw))(*((one, len(one)) for one in raw))
        rows, why = ctypes.c_void_p(), _Failure()
        if (
            self._library.minilm_embed(
                self._pointer, texts, len(texts), ctypes.byref(rows), ctypes.byref(why)
            )
            != 0
        ):
            raise MinilmError(why.text.decode(errors="replace"))
        return Embeddings(self, rows.value or 0, len(texts))

    def memory(self) -> Memory:
        """What the runtime's tensor pool, which lies where the model computes, says of itself.
        ValueError when the model is closed."""
        if not self.is_open:
            raise ValueError("the model is closed")
        found = Memory()
        self._library.minilm_memory_get(self._pointer, ctypes.byref(found))
        return found

    def close(self) -> None:
        """Frees the model, and its embeddings with it; no other thread may be using it. A second
        time does nothing."""
        pointer, self._pointer = self._pointer, ctypes.c_void_p()
        if pointer:
            self._library.minilm_close(pointer)

    __del__ = close

    def __enter__(self) -> "Minilm":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


# ---- a program that uses it, under prof ----

SENTENCES = (
    "How much memory does a model need at its peak?",
    "Where does the time of a step go?",
    "The kettle is boiling, would you like some tea?",
    "A profiler shows which operator is slow.",
    "The cat sleeps on the warm window sill.",
    "Water is on for a cup of tea.",
    "What is the largest amount of memory that inference takes?",
    "Matrix products are where most of the time is spent.",
    "Our kitten naps in the sun by the window.",
    "It will rain tomorrow, so take an umbrella.",
    "Tools that measure programs tell you what to make faster.",
    "Tomorrow's forecast says wet weather.",
)
PAIRS, ROWS, MIB = 3, 12, 1 << 20


class Pair(NamedTuple):
    cosine: float
    first: int
    second: int


def nearest_pairs(rows: Sequence[List[float]]) -> List[Pair]:
    """Of all pairs: in Python, so that the table shows what that costs. Rows have length 1, so a
    cosine is a sum of products."""
    vectors = list(rows)
    return heapq.nlargest(
        PAIRS,
        (
            Pair(sum(map(mul, vectors[i], vectors[j])), i, j)
            for j in range(len(vectors))
            for i in range(j)
        ),
    )


def read_sentences(path: str) -> List[str]:
    """A line each, but for blank ones; "-" is stdin."""
    with open(
        0 if path == "-" else path, encoding="utf-8", errors="replace", closefd=path != "-"
    ) as lines:
        return [line.strip() for line in lines if line.strip()]


def run(options: argparse.Namespace) -> None:
    sentences = (
        read_sentences(options.file) if options.file else options.sentences or list(SENTENCES)
    )
    library = load()
    try:
        import prof
    except ModuleNotFoundError:
        raise MinilmError(
            "the package prof is missing: pip install ./bindings/python, or set PYTHONPATH to "
            "bindings/python"
        ) from None

    with prof.profile(profile_memory=True, level=options.level) as p:
        with prof.record_function("python: open the model"):
            model = Minilm(options.model, library, options.device)
        with model:
            with prof.scope("python: embed", "stage", sentences=len(sentences)):
                embeddings = model.embed(sentences)
            with prof.record_function("python: nearest pairs"):
                pairs = nearest_pairs(embeddings)
            embeddings.close()
            own = model.memory()

    print(
        f"Sentences: {len(sentences)}, each embedded as {model.width} floats."
        + (" The nearest to each other, by the cosine of the two:" if pairs else "")
    )
    for pair in pairs:
        print(f"  {pair.cosine:.3f}  {sentences[pair.first]}\n         {sentences[pair.second]}")
    print(
        "\nOne table: scopes of Python's (python: ...), the runtime's operators (dense, ...)"
        + (", and its VM's instructions around them (layer ...)." if options.level == 2 else ".")
    )
    memory = "cpu" if options.device == "host" else options.device
    print(
        f"{memory.upper()} Mem is what was taken from the runtime's pool, less what was given "
        f"back.\n"
    )
    print(
        p.key_averages().table(
            sort_by="self_cpu_time_total" if options.device == "host" else "self_device_time_total",
            row_limit=ROWS,
        )
    )
    peak = prof.memory_profiler.get_max_memory_info(memory)
    seen = (
        f"{peak['max_used_bytes'] / MIB:.3f} MiB used, {peak['max_allocated_bytes'] / MIB:.3f} MiB "
        f"allocated"
    )
    print(
        f"The pool's peaks: {seen}. By its own account: {own.used_peak_bytes / MIB:.3f} and "
        f"{own.reserved_peak_bytes / MIB:.3f} MiB"
    )
    p.export_chrome_trace(options.out)
    print(
        f"The trace is in {options.out}: open it in https://ui.perfetto.dev or in chrome://tracing"
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        description=(
            "Embeds sentences with all-MiniLM-L6-v2, in C, and shows what prof saw of it and of "
            "Python."
        )
    )
    parser.add_argument("sentences", nargs="*", metavar="SENTENCE", help="default: a dozen")
    parser.add_argument("--file", help="a sentence a line; - is stdin")
    parser.add_argument(
        "--model",
        metavar="DIR",
        help="config.json, vocab.txt, model.safetensors; default: what fetch-model.sh fetched",
    )
    parser.add_argument(
        "--device",
        choices=("host", "opencl", "cuda", "hip"),
        default="host",
        help=(
            "who computes: OpenBLAS, or the first device of OpenCL, CUDA or HIP (default "
            "%(default)s)"
        ),
    )
    parser.add_argument(
        "--level",
        type=int,
        choices=(1, 2),
        default=2,
        help="1 operators, 2 also the VM's instructions around them (default 2)",
    )
    parser.add_argument(
        "--out",
        metavar="FILE",
        default="minilm-python-trace.json",
        help="the trace; default: %(default)s",
    )
    options = parser.parse_args()
    if options.file and options.sentences:
        parser.error("sentences come from the command line or from --file, not from both")
    try:
        run(options)
    except (MinilmError, OSError, ValueError, ImportError) as e:
        print(f"minilm.py: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
