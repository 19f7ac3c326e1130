"""Exports a trace as columns. C provides them through Arrow's C stream interface. pyarrow converts
them to tables, and writes Parquet and Arrow files. ``prof dump`` executes main() for these
files."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import stat
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, List, NoReturn, Optional, Sequence

from . import _structs as s
from ._library import C, encoded, sized, whole
from ._whole_file import refuse_system_folder, replaced

if TYPE_CHECKING:
    from .trace import Trace

FORMATS = {"parquet": ".parquet", "arrow": ".arrow"}
"""The formats that pyarrow writes, and their endings."""
_SELECTED = ("start_ns", "duration_ns", "name", "category", "tid")
"""Only these columns have statistics, because they take time. Readers use them to skip parts of a
Parquet file."""
_GROUP_ROWS = 1 << 18
"""Rows of a row group of Parquet. Dictionaries need large groups; this size takes 60 MB."""


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
        import pyarrow.parquet
    except ImportError as e:
        raise ImportError(
            f"Arrow and Parquet need the package pyarrow ({e}); "
            f"type: {sys.executable} -m pip install 'libprof[arrow]'"
        ) from None
    return pyarrow


class Filter:
    """Selects the events of a stream by options of ``prof dump`` without their dashes, such as
    "name=REGEX". It must exist until the stream has been read."""

    PARTS = ("scopes", "arrows", "allocations and frees", "counters and instants")

    def __init__(self, words: Sequence[str] = ()) -> None:
        self.texts = tuple(words)
        self.count = len(words)
        self.words = (ctypes.c_char_p * max(self.count, 1))(*map(os.fsencode, words))
        self.counts = (ctypes.c_uint64 * (1 + 2 * len(self.PARTS)))()

    @property
    def passed(self) -> int:
        """Events that pass all options. Counters and instants are also written if others do."""
        return int(self.counts[0])

    def left_out(self) -> str:
        """As "2 of 3 scopes, 1 of 4 arrows": parts that the trace does not have are not named."""
        written, left_out = self.counts[1::2], self.counts[2::2]
        return ", ".join(
            f"{left} of {passed + left} {part}"
            for part, passed, left in zip(self.PARTS, written, left_out)
            if passed + left > 0
        )


def _stream(
    trace: Trace, from_ns: int, to_ns: int, rows: int, only: Optional[Filter] = None
) -> s.ArrowStream:
    options = sized(
        s.ArrowOptions,
        from_ns=whole(from_ns, "from_ns"),
        to_ns=whole(to_ns, "to_ns"),
        batch_rows=whole(rows, "batch_rows", 0, 0xFFFFFFFF),
    )
    wish = sized(s.ArrowWish, options=ctypes.pointer(options))
    if only is not None:
        wish.filters, wish.filter_count, wish.counts = only.words, only.count, only.counts
    stream = s.ArrowStream()
    with trace._shared as pointer:
        C.check(C.prof_i_trace_arrow_1(pointer, ctypes.byref(wish), ctypes.byref(stream)))
    return stream


def capsule(trace: Trace) -> Any:
    """For __arrow_c_stream__()."""
    return C.prof_i_python_capsule_1(ctypes.byref(_stream(trace, 0, 0, 0)))


def reader(
    trace: Trace, from_ns: int = 0, to_ns: int = 0, rows: int = 0, only: Optional[Filter] = None
) -> Any:
    """A pyarrow.RecordBatchReader. It owns the stream, and keeps the trace alive."""
    pyarrow = _pyarrow()
    stream = _stream(trace, from_ns, to_ns, rows, only)
    return pyarrow.RecordBatchReader._import_from_c(ctypes.addressof(stream))


def to_pandas(trace: Trace, from_ns: int = 0, to_ns: int = 0) -> Any:
    pyarrow = _pyarrow()
    try:
        import pandas
    except ImportError as e:
        raise ImportError(
            f"to_pandas() needs the package pandas ({e}); "
            f"type: {sys.executable} -m pip install 'libprof[arrow,pandas]'"
        ) from None
    # Without these types, pandas converts columns with nulls to floats, which lose digits.
    types = {pyarrow.uint64(): pandas.UInt64Dtype(), pyarrow.uint32(): pandas.UInt32Dtype()}
    return reader(trace, from_ns, to_ns).read_all().to_pandas(types_mapper=types.get)


# ---- files ----


def _dictionaries(read: Callable[[], Any]) -> Dict[int, Any]:
    """All texts of each column with a dictionary. The last batch has all texts."""
    last = None
    for batch in read():
        last = batch
    if last is None:
        return {}
    return {
        i: column.dictionary
        for i, column in enumerate(last.columns)
        if hasattr(column, "dictionary")
    }


def _with_dictionaries(pyarrow: Any, batch: Any, texts: Dict[int, Any]) -> Any:
    """The same rows, whose dictionaries have all texts."""
    columns = [
        pyarrow.DictionaryArray.from_arrays(column.indices, texts[i]) if i in texts else column
        for i, column in enumerate(batch.columns)
    ]
    return pyarrow.RecordBatch.from_arrays(columns, schema=batch.schema)


def _with_equal_dictionaries(pyarrow: Any, read: Callable[[], Any]) -> Callable[[], Any]:
    """For the rows of a merged file, which are read twice. pyarrow groups the rows of a Parquet
    file only if all row groups have equal dictionaries."""
    texts = _dictionaries(read)

    def read_again() -> Any:
        batches = read()
        return pyarrow.RecordBatchReader.from_batches(
            batches.schema, (_with_dictionaries(pyarrow, batch, texts) for batch in batches)
        )

    return read_again


def _write_parquet(pyarrow: Any, path: str, read: Callable[[], Any]) -> int:
    batches, rows = read(), 0
    codec = "zstd" if pyarrow.Codec.is_available("zstd") else "snappy"
    times = [f.name for f in batches.schema if f.type == pyarrow.int64()]
    with_texts = [f.name for f in batches.schema if pyarrow.types.is_dictionary(f.type)]
    with pyarrow.parquet.ParquetWriter(
        path,
        batches.schema,
        compression=codec,
        compression_level=1 if codec == "zstd" else None,
        use_dictionary=with_texts,
        write_statistics=list(_SELECTED),
        column_encoding={name: "DELTA_BINARY_PACKED" for name in times},
    ) as writer:
        for batch in batches:
            writer.write_batch(batch, _GROUP_ROWS)
            rows += batch.num_rows
    return rows


def _write_arrow(pyarrow: Any, path: str, read: Callable[[], Any]) -> int:
    """An Arrow file has each dictionary once, before the batches. So the stream is read twice."""
    texts = _dictionaries(read)
    batches, rows = read(), 0
    codec = "zstd" if pyarrow.Codec.is_available("zstd") else None
    options = pyarrow.ipc.IpcWriteOptions(compression=codec)
    with pyarrow.ipc.new_file(path, batches.schema, options=options) as writer:
        for batch in batches:
            writer.write_batch(_with_dictionaries(pyarrow, batch, texts))
            rows += batch.num_rows
    return rows


def format_of(path: str, format: str) -> str:
    """The format, if pyarrow writes it; else ""."""
    if format:
        return format if format in FORMATS else ""
    return next((name for name, ending in FORMATS.items() if path.endswith(ending)), "")


def write(
    trace: Trace,
    path: str,
    format: str,
    from_ns: int = 0,
    to_ns: int = 0,
    only: Optional[Filter] = None,
) -> int:
    """Writes the file, and returns the number of its events. The path never has a partial file. If
    no event passes the filter, no file is written."""
    return write_rows(lambda: reader(trace, from_ns, to_ns, _GROUP_ROWS, only), path, format, only)


def write_rows(
    read_rows: Callable[[], Any],
    path: str,
    format: str,
    only: Optional[Filter] = None,
    is_merged: bool = False,
) -> int:
    """The same of a stream of rows, which is read once or twice."""
    pyarrow = _pyarrow()
    encoded(path, "path")
    refuse_system_folder(path)

    def read() -> Any:
        if only is not None:
            ctypes.memset(only.counts, 0, ctypes.sizeof(only.counts))
        return read_rows()

    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ValueError(f"{path!r} is no regular file, which the format {format} needs")
    write_format = _write_parquet if format == "parquet" else _write_arrow
    with replaced(path) as name:
        if is_merged and format == "parquet":
            rows = write_format(pyarrow, name, _with_equal_dictionaries(pyarrow, read))
        else:
            rows = write_format(pyarrow, name, read)
        if only is not None and only.passed == 0:
            raise LookupError("no event passed the filter")
    return rows


# ---- the command ----


class _Ended(BaseException):
    """A signal that ends the command."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _end(number: int, frame: Any) -> NoReturn:
    """A second signal must not interrupt the removal of the file, which the first one starts."""
    for each in _ENDS:
        signal.signal(each, signal.SIG_IGN)
    raise _Ended(number)


def _say_filtered(shown: str, only: Filter) -> None:
    print(f"prof dump: {shown} is filtered. Left out: {only.left_out()}", file=sys.stderr)


def _dump(words: List[str]) -> int:
    # Imported here because these import this module.
    from ._arrow_merged import PART, Part, merged_reader
    from .trace import Trace

    source, path, shown, format, begin, end, *others = words
    filters = [word for word in others if not word.startswith(PART)]
    parts = [Part.read(word) for word in others if word.startswith(PART)]
    from_ns, to_ns = int(begin), int(end)
    only = Filter(filters) if filters else None
    try:
        if parts:
            write_rows(
                lambda: merged_reader(parts, from_ns, to_ns, _GROUP_ROWS, only),
                path,
                format,
                only,
                is_merged=True,
            )
        else:
            with Trace.open(source) as trace:
                write(trace, path, format, from_ns, to_ns, only)
    except LookupError:
        return 3
    except (ImportError, MemoryError, OSError, ValueError) as e:
        print(f"prof dump: {shown}: {e}", file=sys.stderr)
        return 1
    if only is not None:
        _say_filtered(shown, only)
    return 0


def main(words: List[str]) -> int:
    """The entry point for ``prof dump``. The words are: the capture, the file, the file's name in
    messages, the format, two times, the captures of a merged file, and the options of a filter.
    Returns the exit status."""
    for number in _ENDS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)
    try:
        return _dump(words)
    except _Ended as end:
        signal.signal(end.number, signal.SIG_DFL)
        os.kill(os.getpid(), end.number)
        return 128 + end.number
