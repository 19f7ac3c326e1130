"""Reads arguments of events on demand, of one or of many events by one call of C
(src/python/packed_args.c). Objects that many events share are created once."""

from __future__ import annotations

import ctypes
import itertools
import json
import struct
from typing import Any, Dict, Iterable, Iterator, List, Optional, Tuple

from . import _inputs
from . import flops as _flops
from ._library import C

STACK_KEY = "Call stack"  # PROF_STACK_KEY of <prof/trace.h>
SEQUENCE_KEY, FORWARD_KEY, THREAD_KEY = "Sequence number", "Fwd thread id", "Thread id"
"""Of inject/torch/calls.c."""
TEXT_LIST = "[\x1f"
"""So begins the JSON of a list of texts, a range's argument: no JSON and no program's text has that
mark there. The same in chrome_args.c."""
Source = Tuple[int, int, int, int]
"""Of an event: record, kind, thread and site, as BRIEF has them."""
Given = Tuple["Same", bytes]
"""An event's arguments: what others have as well, and its own numbers, which Same reads. Python's
collector of garbage does not look at bytes: else it would take most of the time."""

_SOURCE = struct.Struct("@QIIII")  # prof_i_python_source
_HEAD, _ARG, _KIND = struct.Struct("@IIII"), struct.Struct("@IIII"), struct.Struct("@I")
_BOOL, _STRING, _TENSOR = 4, 5, 7  # prof_arg_type
_CODES = {1: "q", 2: "Q", 3: "d", _BOOL: "Q", 6: "Q"}
_ROOM, _BATCH = 1 << 16, 256
_SAME_MOST, _SAME_BYTES_MOST = 1 << 16, 16 << 20
"""So many are kept for the next event: a program may give another text to each call."""


class NoTensor(Tuple[int, ...]):
    """The shape of an input that is not a tensor: no dimensions, and no type."""


NO_TENSOR = NoTensor()


class Same:
    """The shared part of events whose arguments differ only in numbers."""

    def __init__(self, raw: bytes) -> None:
        """raw: in the layout of src/python/packed_args.c."""
        self._plain: Dict[str, Any] = {}
        self._lists: Dict[str, List[str]] = {}
        self._numbers: List[Tuple[str, int, bool]] = []
        """Their keys and places, and whether they are shown as a bool."""
        self._tensors: List[Tuple[Tuple[int, ...], int]] = []
        """Of listed inputs the dimensions and prof_dtype."""
        codes = self._parse(raw)
        self._unpack = struct.Struct(f"@{codes}").unpack
        self.stack = str(self._plain.pop(STACK_KEY, ""))  # not an argument of the user
        self.texts = _inputs.take(self._plain) if self._tensors else _inputs.NO_TEXTS
        if self.texts[3]:
            self._tensors = _inputs.tensors(self._tensors, self.texts)
        places = {key: place for key, place, _ in self._numbers if codes[place] != "d"}
        self._sequence_at = places.get(SEQUENCE_KEY, -1)
        self._forward_at = places.get(FORWARD_KEY, -1)
        self._thread_at = places.get(THREAD_KEY, -1)
        self._flops: Dict[str, int] = {}
        self._made: Dict[str, List[Any]] = {}

    def _parse(self, raw: bytes) -> str:
        """Gives the codes of the numbers for struct."""
        at, codes, is_listed = _KIND.size, "", _KIND.unpack_from(raw)[0] != 0
        while at < len(raw):
            key_bytes, kind, value_bytes, dtype = _ARG.unpack_from(raw, at)
            at += _ARG.size
            key = raw[at : at + key_bytes].decode(errors="replace")
            at += key_bytes
            value = raw[at : at + value_bytes]
            at += value_bytes
            is_named = bool(key) or not is_listed
            if kind == _TENSOR:
                rank = value_bytes // 8
                dims = struct.unpack(f"@{rank}q", value) if rank or dtype else NO_TENSOR
                if is_named:
                    self._plain[key] = dims
                else:
                    self._tensors.append((dims, dtype))
            elif kind == _STRING:
                if is_named:
                    self._take_text(key, value.decode(errors="replace"))
            else:
                if is_named:
                    self._plain[key] = None
                    self._numbers.append((key, len(codes), kind == _BOOL))
                codes += _CODES.get(kind, "Q")
        return codes

    def _take_text(self, key: str, text: str) -> None:
        if text.startswith(TEXT_LIST):
            try:
                self._lists[key] = json.loads(text.replace(TEXT_LIST, "[", 1))
            except ValueError:  # it was cut
                pass
        self._plain[key] = text

    def args(self, own: bytes, is_operator: bool) -> Dict[str, Any]:
        """A new dictionary. An operator's sequence number is not among the arguments."""
        found, numbers = self._plain.copy(), self._unpack(own)
        for key, texts in self._lists.items():
            found[key] = texts.copy()
        for key, place, is_bool in self._numbers:
            found[key] = bool(numbers[place]) if is_bool else numbers[place]
        if is_operator and self._sequence_at >= 0:
            for key in (SEQUENCE_KEY, FORWARD_KEY, THREAD_KEY):
                found.pop(key, None)
        return found

    def operator(self, own: bytes) -> Tuple[int, Optional[int], Optional[int]]:
        """The sequence number, torch's number of the forward call's thread (0: none), and torch's
        number of the operator's thread."""
        if self._sequence_at < 0:
            return -1, 0, None
        numbers, forward, thread = self._unpack(own), self._forward_at, self._thread_at
        return (
            numbers[self._sequence_at],
            numbers[forward] if forward >= 0 else 0,
            numbers[thread] if thread >= 0 else None,
        )

    def shapes(self) -> List[List[int]]:
        """A new list."""
        return [list(dims) for dims, _ in self._tensors]

    def flops(self, name: str) -> int:
        """Of a call of that name."""
        found = self._flops.get(name)
        if found is None:
            is_known = bool(self._tensors) and self._tensors[0][0] is not NO_TENSOR
            found = _flops.of(name, self.shapes(), self.texts[0]) if is_known else 0
            self._flops[name] = found
        return found

    def concrete(self) -> List[Any]:
        return self._copy("concrete", lambda: _inputs.concrete(self.texts))

    def strides(self) -> List[Any]:
        return self._copy("strides", lambda: _inputs.strides(self.texts))

    def structured_shapes(self) -> List[Any]:
        return self._copy("shapes", lambda: _inputs.shapes(self.shapes(), self.texts))

    def dtypes(self) -> List[str]:
        codes = [dtype for _, dtype in self._tensors]
        return self._copy("dtypes", lambda: _inputs.dtypes(codes, self.texts))

    def _copy(self, name: str, make: Any) -> List[Any]:
        """A new list of the shared objects."""
        made = self._made.get(name)
        if made is None:
            made = self._made[name] = make()
        return _copied(made)


def _copied(values: List[Any]) -> List[Any]:
    return [_copied(value) if type(value) is list else value for value in values]


class Reader:
    """Of one trace. Any thread."""

    def __init__(self, trace: ctypes.c_void_p) -> None:
        self._trace = trace
        self._idle: List[_Room] = []
        self._same: Dict[bytes, Same] = {}
        self._same_bytes = 0

    def one(self, source: Source) -> Given:
        room = self._take()
        _SOURCE.pack_into(room.sources, 0, *source, 0)
        while True:
            count = _read(self._trace, room.sources, 1, room.given, room.bytes)
            if count > 0:
                found = self._given(room, 0)[0]
                self._idle.append(room)
                return found
            self._grow(room, count)

    def many(self, sources: Iterable[Source]) -> Iterator[Given]:
        """In the same order."""
        room, left = self._take(), iter(sources)
        while True:
            batch = list(itertools.islice(left, _BATCH))
            if not batch:
                break
            for place, source in enumerate(batch):
                _SOURCE.pack_into(room.sources, place * _SOURCE.size, *source, 0)
            done = 0
            while done < len(batch):
                sources_left = ctypes.byref(room.sources, done * _SOURCE.size)
                count = _read(self._trace, sources_left, len(batch) - done, room.given, room.bytes)
                if count <= 0:
                    self._grow(room, count)
                    continue
                done, at = done + count, 0
                for _ in range(count):
                    given, at = self._given(room, at)
                    yield given
        self._idle.append(room)

    def _take(self) -> "_Room":
        try:
            return self._idle.pop()
        except IndexError:  # other threads have theirs
            return _Room()

    @staticmethod
    def _grow(room: "_Room", count: int) -> None:
        """0: not even one had room."""
        C.check(count)
        room.set_bytes(2 * room.bytes)

    def _given(self, room: "_Room", at: int) -> Tuple[Given, int]:
        """The entry at that place, and the place of the next."""
        raw = room.raw
        size, number_count, same_bytes, _ = _HEAD.unpack_from(raw, at)
        numbers_at = at + _HEAD.size
        same_at = numbers_at + 8 * number_count
        key = raw[same_at : same_at + same_bytes].tobytes()
        same = self._same.get(key)
        if same is None:
            self._same_bytes += same_bytes
            if len(self._same) >= _SAME_MOST or self._same_bytes > _SAME_BYTES_MOST:
                self._same.clear()
                self._same_bytes = same_bytes
            same = self._same[key] = Same(key)
        return (same, raw[numbers_at:same_at].tobytes()), at + size


class _Room:
    """What one call of C reads and writes."""

    __slots__ = ("sources", "given", "bytes", "raw")

    def __init__(self) -> None:
        self.sources = ctypes.create_string_buffer(_BATCH * _SOURCE.size)
        self.set_bytes(_ROOM)

    def set_bytes(self, count: int) -> None:
        self.given, self.bytes = ctypes.create_string_buffer(count), count
        self.raw = memoryview(self.given).cast("B")


def _read(*arguments: Any) -> int:
    """The first call puts C's own function here."""
    global _read
    _read = C.prof_i_python_arguments_1
    return int(_read(*arguments))
