"""Reads the captures of a merged file as one table. Times are from the start of the common time
line, and the column ``process`` says which capture a row is of. No two processes have one number,
no two threads, and no two calls that launched work."""

from __future__ import annotations

import importlib
import os
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ._arrow import Filter, _pyarrow, reader
from .trace import Trace

PART = "part="
"""The words of the command that begin with this are captures."""
_OWN_FACTS = (b"prof.version",)
"""Facts of the schema that hold for all captures."""


class Part(NamedTuple):
    path: str
    offset_ns: int
    """Of the capture's start, from the start of the time line."""
    pid_offset: int
    """To add, because another capture has the same number. Negative for numbers above 2^30."""
    label: str

    @staticmethod
    def read(word: str) -> Part:
        """ "part=OFFSET:PID_OFFSET:LABEL:PATH". A label has no colon."""
        offset_ns, pid_offset, label, path = word[len(PART) :].split(":", 3)
        text = os.fsencode(label).decode(errors="replace")  # a host's name may be any bytes
        return Part(path, int(offset_ns), int(pid_offset), text)


class _Texts:
    """The texts of one column, of all captures so far. It only grows."""

    def __init__(self, type: Any) -> None:
        self.type = type
        self.numbers: Dict[Any, int] = {}
        self.array: Any = None

    def join(self, column: Any) -> Any:
        """The column with indexes into these texts."""
        pyarrow = _pyarrow()
        numbers = self.numbers
        known = len(numbers)
        mapped = [numbers.setdefault(text, len(numbers)) for text in column.dictionary.to_pylist()]
        if self.array is None or len(numbers) != known:
            self.array = pyarrow.array(list(numbers), self.type.value_type)
        places = pyarrow.array(mapped, self.type.index_type)
        return pyarrow.DictionaryArray.from_arrays(places.take(column.indices), self.array)


class _Joiner:
    """Makes the rows of a capture rows of the common table."""

    def __init__(self, schema: Any) -> None:
        pyarrow = _pyarrow()
        process = pyarrow.field(
            "process", pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), nullable=False
        )
        facts = {k: v for k, v in (schema.metadata or {}).items() if k in _OWN_FACTS}
        self.schema = schema.append(process).with_metadata(facts)
        self.texts = {
            field.name: _Texts(field.type)
            for field in self.schema
            if pyarrow.types.is_dictionary(field.type)
        }
        self.last_correlation = 0
        """The largest number so far. Each capture begins with 1."""

    def join(self, batch: Any, part: Part, threads_before: int, correlations_before: int) -> Any:
        pyarrow = _pyarrow()
        compute = importlib.import_module("pyarrow.compute")
        more = {
            "start_ns": part.offset_ns,
            "launch_start_ns": part.offset_ns,
            "pid": part.pid_offset,
            "thread_index": threads_before,
            "launch_thread_index": threads_before,
            "correlation": correlations_before,
        }
        label = pyarrow.array([part.label] * batch.num_rows, pyarrow.string())
        columns = [*batch.columns, label.dictionary_encode()]
        for i, field in enumerate(self.schema):
            if field.name in self.texts:
                columns[i] = self.texts[field.name].join(columns[i])
            elif more.get(field.name):
                added = pyarrow.scalar(more[field.name], field.type)
                columns[i] = compute.add(columns[i], added)
            if field.name == "correlation":
                last = compute.max(columns[i]).as_py() or 0
                self.last_correlation = max(self.last_correlation, last)
        return pyarrow.RecordBatch.from_arrays(columns, schema=self.schema)


def _window(part: Part, from_ns: int, to_ns: int) -> Optional[Tuple[int, int]]:
    """In times of the capture. None: it is after the window."""
    if to_ns and to_ns <= part.offset_ns:
        return None
    return max(from_ns - part.offset_ns, 0), max(to_ns - part.offset_ns, 0)


def merged_reader(
    parts: List[Part], from_ns: int, to_ns: int, rows: int, only: Optional[Filter]
) -> Any:
    """A pyarrow.RecordBatchReader of all captures, which are opened one after the other. The counts
    of the filter become the sums."""
    pyarrow = _pyarrow()
    with Trace.open(parts[0].path) as first:
        joiner = _Joiner(reader(first).schema)

    def batches() -> Iterator[Any]:
        threads_before = 0
        for part in parts:
            window = _window(part, from_ns, to_ns)
            own = None if only is None else Filter(only.texts)
            correlations_before = joiner.last_correlation
            with Trace.open(part.path) as trace:
                if window is not None:
                    for batch in reader(trace, *window, rows, own):
                        yield joiner.join(batch, part, threads_before, correlations_before)
                threads_before += trace.info().thread_count
            if only is not None and own is not None:
                only.counts[:] = [a + b for a, b in zip(only.counts, own.counts)]

    return pyarrow.RecordBatchReader.from_batches(joiner.schema, batches())
