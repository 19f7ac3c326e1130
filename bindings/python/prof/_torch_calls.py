"""The callbacks of PyTorch's dispatcher (at::RecordFunction), by libprof_torch.so
(inject/torch): opened in the torch that the process has, and proven there by known calls
before any is recorded."""

from __future__ import annotations

import _thread
import ctypes
import os
import threading
from importlib import import_module
from typing import Any, Callable, Dict, List, Sequence

from . import _own_calls
from .modules import shapes_of

LIBRARY = "libprof_torch.so"
RANGE = "prof.torch.observe()"
_THIS_THREAD = 2**64 - 1
_WHOM_BIT, _NUMBERS = 52, 16
"""Of calls.c, and of src/format/layout.h."""
_FUNCTION, _BACKWARD, _USER = 0, 1, 7
_INPUTS = _RANK = 4
_NONE, _INT, _DOUBLE, _BOOL, _LIST, _TENSORS = range(1, 7)
"""What an input is that is no tensor: prof_i_torch_known_kind of inject/torch/internal.h."""
_UNSTRIDED = ("Sparse", "SparseCsr", "MkldnnCPU")
"""Keys of tensors that have no strides."""
FOR_THREAD, FOR_ALL, FOR_RUN = range(3)
"""Which threads callbacks are for, as calls.c has it: this thread; all threads; all threads for
``python -m prof run``, beside an observer of the program's."""


class _Input(ctypes.Structure):
    _fields_ = [
        ("impl", ctypes.c_void_p),
        ("rank", ctypes.c_uint32),
        ("dtype", ctypes.c_uint32),
        ("dims", ctypes.c_int64 * _RANK),
        ("kind", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


class _Known(ctypes.Structure):
    """prof_i_torch_known of inject/torch/internal.h."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("sequence", ctypes.c_int64),
        ("forward", ctypes.c_uint64),
        ("scope", ctypes.c_uint32),
        ("count", ctypes.c_uint32),
        ("inputs", _Input * _INPUTS),
        ("concrete", ctypes.c_char_p),
        ("strides", ctypes.c_char_p),
    ]


class _Layout(ctypes.Structure):
    """prof_i_torch_layout of inject/torch/internal.h."""

    _fields_ = [
        (name, ctypes.c_uint32)
        for name in (
            "call_bytes",
            "scope",
            "sequence",
            "forward",
            "inputs",
            "tensor_tag",
            "key_set",
        )
    ] + [("avoided", ctypes.c_uint64), ("custom", ctypes.c_uint64)]


class _ValuesLayout(ctypes.Structure):
    """prof_i_torch_values_layout of inject/torch/internal.h."""

    _fields_ = [
        (name, ctypes.c_uint32)
        for name in ("int_tag", "double_tag", "bool_tag", "list_tag", "elements", "is_proven")
    ] + [
        ("int_type", ctypes.c_uint64),
        ("tensor_type", ctypes.c_uint64),
        ("unstrided", ctypes.c_uint64),
    ]


def _bits(keys: Any) -> int:
    """A DispatchKeySet's, which has no raw_repr() before 2.5: there they stand where pybind11's
    object says, behind the head of each object of Python's."""
    if hasattr(keys, "raw_repr"):
        return int(keys.raw_repr())
    return ctypes.c_uint64.from_address(
        ctypes.c_size_t.from_address(id(keys) + object.__basicsize__).value
    ).value


class Added(ctypes.Structure):
    """added of calls.c."""

    _fields_ = [("handle", ctypes.c_uint64), ("node", ctypes.c_uint64)]

    @property
    def number(self) -> int:
        """The number that the thread's operators have in their sites, or 0."""
        found = int(self.handle) >> _WHOM_BIT & 0xFF
        return found if found <= _NUMBERS else 0


class Unproven(RuntimeError):
    """This torch keeps things elsewhere than known calls say, or lacks what is called."""


@_own_calls.is_silent
def _run_apart(prove: Callable[[], None], errors: List[BaseException], is_running: Any) -> None:
    try:
        prove()
    except Exception as e:
        errors.append(e)
    finally:
        is_running.release()


def _wait_for(lock: Any) -> None:
    """Acquires the lock. If a signal handler raises meanwhile, the exception is raised afterwards,
    because the thread that holds the lock must not run when the interpreter ends."""
    raised: List[BaseException] = []
    while True:
        try:
            lock.acquire()
            break
        except BaseException as e:
            raised.append(e)
    if raised:
        raise raised[0]


def apart(prove: Callable[[], None]) -> None:
    """Runs `prove` to its end on a new thread. The program's modes and profilers are not active
    there, and its sequence numbers are not used. Raises Unproven."""
    errors: List[BaseException] = []
    is_running = _thread.allocate_lock()
    is_running.acquire()
    # Not with threading: its functions would run on the thread before prof's, and be recorded.
    _thread.start_new_thread(_run_apart, (prove, errors, is_running))
    _wait_for(is_running)
    if errors and not isinstance(errors[0], Unproven):
        raise Unproven(
            f"the calls by which it is proven cannot be made: {type(errors[0]).__name__}: "
            f"{errors[0]}"
        )
    if errors:
        raise errors[0]


def _say_kind(to: _Input, value: Any) -> None:
    """Of an input that is no tensor. A list that has other things than ints or tensors is left
    unsaid."""
    if value is None:
        to.kind = _NONE
    elif isinstance(value, bool):
        to.kind, to.dims[0] = _BOOL, value
    elif isinstance(value, int):
        to.kind, to.dims[0] = _INT, value
    elif isinstance(value, float):
        to.kind, to.dims[0] = _DOUBLE, ctypes.c_int64.from_buffer(ctypes.c_double(value)).value
    elif value and all(isinstance(item, int) for item in value):
        to.kind, to.rank, to.dims[: len(value)] = _LIST, len(value), value
    elif value and all(hasattr(item, "_cdata") for item in value):
        to.kind, to.rank = _TENSORS, len(value)
        to.dims[: len(value)] = [item._cdata for item in value]


class Calls:
    """Opened and proven. Raises OSError without the library, Unproven."""

    def __init__(self, path: str, torch: Any) -> None:
        self.library = library = ctypes.CDLL(path)
        library.prof_i_torch_open_1.restype = library.prof_i_torch_prove_1.restype = ctypes.c_char_p
        library.prof_i_torch_expect_1.argtypes = [ctypes.POINTER(_Known)]
        library.prof_i_torch_expect_1.restype = None
        library.prof_i_torch_keys_1.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int]
        library.prof_i_torch_keys_1.restype = None
        library.prof_i_torch_prove_1.argtypes = [ctypes.c_uint64]
        library.prof_i_torch_layout_1.restype = ctypes.POINTER(_Layout)
        library.prof_i_torch_add_1.argtypes = [
            ctypes.c_int,
            ctypes.c_uint32,
            ctypes.c_uint64,
            ctypes.POINTER(Added),
        ]
        library.prof_i_torch_remove_1.argtypes = [
            ctypes.POINTER(Added),
            ctypes.c_uint64,
            ctypes.c_int,
        ]
        library.prof_i_torch_has_retired_1.argtypes = [ctypes.c_int, ctypes.c_uint64]
        library.prof_i_torch_add_1.restype = library.prof_i_torch_remove_1.restype = None
        library.prof_i_torch_values_open_1.argtypes = [ctypes.c_uint64]
        library.prof_i_torch_values_open_1.restype = None
        library.prof_i_torch_values_prove_1.restype = ctypes.c_char_p
        library.prof_i_torch_values_layout_1.restype = ctypes.POINTER(_ValuesLayout)
        _own_calls.silence_torch_by(library.prof_i_torch_silence_1)
        self._torch_c = getattr(torch, "_C", None)
        self._version = getattr(torch, "__version__", "of an unknown version")
        self._has_said_values = False
        apart(lambda: self._prove(torch))
        self.values_problem = ""
        """Why inputs that are no tensors, and strides, cannot be recorded, where they cannot."""
        try:
            apart(lambda: self._prove_values(torch))
        except Unproven as e:
            self.values_problem = str(e)

    def add(self, added: Added, with_shapes: bool, who: int = FOR_THREAD) -> None:
        """To this thread, or to all. C writes what remove() takes into `added`, which the caller
        has before: an interrupt may come between C and any line of Python."""
        node = self._node()
        if with_shapes and self.values_problem and not self._has_said_values:
            import warnings

            self._has_said_values = True
            warnings.warn(
                "prof: of the inputs of PyTorch's operators shapes and types alone are recorded, so"
                f" that convolutions have no FLOPs: torch {self._version} is not known well enough"
                f" ({self.values_problem})",
                RuntimeWarning,
                stacklevel=5,
            )
        if (
            who == FOR_THREAD
            and node
            and not self.library.prof_i_torch_has_retired_1(int(with_shapes), node)
        ):
            import warnings

            warnings.warn(
                "prof: PyTorch's operators are observed from inside of a backward call, and only "
                "as long as that lasts: autograd puts back what the thread had before. Begin "
                "outside of it",
                RuntimeWarning,
                stacklevel=5,
            )
        self.library.prof_i_torch_add_1(int(with_shapes), who, node, added)

    def remove(self, added: Added, is_gone: bool = False) -> None:
        """On add()'s thread where it was for that one, or is_gone: that has ended. A second time
        does nothing."""
        self.library.prof_i_torch_remove_1(added, self._node(), int(is_gone))

    def _node(self) -> int:
        """A number of the node of autograd's graph that this thread runs, not 0; those of one
        backward call that have none of torch's (AccumulateGrad) have one together. 0: outside of a
        backward call."""
        call = getattr(self._torch_c, "_current_graph_task_id", lambda: -1)()
        if call == -1:
            return 0
        node = getattr(self._torch_c, "_current_autograd_node", lambda: None)()
        return (call + 1) << 32 | getattr(node, "_sequence_nr", int)() & (1 << 32) - 1

    def has_for_all(self) -> bool:
        """Does this torch export at::addGlobalCallback()?"""
        return bool(self.library.prof_i_torch_has_for_all_1())

    def layout(self) -> Dict[str, int]:
        """What was found: for tests."""
        found = self.library.prof_i_torch_layout_1().contents
        return {name: getattr(found, name) for name, *_ in _Layout._fields_}

    def values_layout(self) -> Dict[str, int]:
        """The same of inputs that are no tensors, and of strides."""
        found = self.library.prof_i_torch_values_layout_1().contents
        return {name: getattr(found, name) for name, *_ in _ValuesLayout._fields_}

    # ---- the known calls: none of them starts autograd's threads, draws a random number, or asks
    # for a device

    def _prove(self, torch: Any) -> None:
        self._ask(self.library.prof_i_torch_open_1())
        keys = torch._C.DispatchKeySet
        avoided = _bits(keys(torch._C.DispatchKey.NestedTensor))
        with torch.inference_mode(False):
            self._make_calls(torch)
            self._look_at_keys(torch)
            if not self._look_at_made(torch):
                avoided |= _bits(keys(torch._C.DispatchKey.Python))
            self._ask(self.library.prof_i_torch_prove_1(avoided))
            self._make_calls(torch)
            self._make_more_calls(torch)
        self._ask(self.library.prof_i_torch_prove_1(avoided))

    def _ask(self, problem: Any) -> None:
        if problem is not None:
            raise Unproven(problem.decode())

    def _meets(
        self,
        call: Any,
        name: str,
        inputs: Sequence[Any],
        sequence: int = -1,
        forward: int = 0,
        scope: int = _FUNCTION,
        texts: Sequence[str] = (),
    ) -> Any:
        known = _Known(name.encode(), sequence, forward, scope, len(inputs))
        if texts:
            known.concrete, known.strides = (text.encode() for text in texts)
        for to, value in zip(known.inputs, inputs):
            if not hasattr(value, "_cdata"):
                _say_kind(to, value)
                continue
            shape = shapes_of((value,))[0]
            to.impl, to.rank, to.dtype = value._cdata, len(shape) - 1, shape[0]
            to.dims[: len(shape) - 1] = shape[1:]
        self.library.prof_i_torch_expect_1(known)
        try:
            made = call()
        finally:
            is_met = self.library.prof_i_torch_met_1()
        if not is_met:
            raise Unproven(f"a known call, {name}, has not come to the callback")
        return made

    def _make_calls(self, torch: Any) -> None:
        x, y = (
            torch.ones(2, 3, device="cpu", dtype=torch.float32),
            torch.ones(3, device="cpu", dtype=torch.float64),
        )
        with torch.no_grad():
            self._meets(lambda: torch.mul(x, y), "aten::mul", [x, y])
        with torch.enable_grad():
            z = x.detach().requires_grad_()
            for _ in range(3):
                following = torch.mul(z, y).grad_fn._sequence_nr() + 1
                product = self._meets(lambda: torch.mul(z, y), "aten::mul", [z, y], following)
                self._meets(lambda: torch.add(z, x, alpha=2), "aten::add", [z, x, 2], following + 1)
                self._meets(
                    lambda: product.grad_fn(y),
                    "MulBackward0",
                    [y],
                    following,
                    _THIS_THREAD,
                    _BACKWARD,
                )
        with torch.no_grad():

            def user() -> None:
                with import_module("torch.autograd.profiler").record_function(RANGE):
                    pass

            self._meets(user, RANGE, [], scope=_USER)

    def _look_at_keys(self, torch: Any) -> None:
        x = torch.ones(2, 2, device="cpu", dtype=torch.complex64)
        y = torch.ones(2, 3, 1, 1, device="cpu", dtype=torch.float32)
        plain = [
            x,
            x.conj(),
            x.to_sparse(),
            torch.empty(2, device="meta"),
            x.detach().requires_grad_(),
            y,
            y.transpose(0, 1),
            y.contiguous(memory_format=torch.channels_last),
            torch.ones((), device="cpu", dtype=torch.int64),
        ]
        for tensor in plain:
            self._look_at(torch, tensor, False)
        for tensor in (x, y, plain[-1], plain[3]):
            self._look_at(torch, torch._to_functional_tensor(tensor), True)

    def _look_at_made(self, torch: Any) -> bool:
        """Tensors of classes that are Python's own (DTensor, FakeTensor). Most of them hold their
        sizes as other tensors do. If the class computes the sizes, the same bit of the keys says
        so. False: this torch cannot make such tensors."""

        class Made(torch.Tensor):  # type: ignore[misc]
            @classmethod
            def __torch_dispatch__(
                cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                raise NotImplementedError

        def make(**policy: str) -> Any:
            return torch.Tensor._make_wrapper_subclass(
                Made, (2, 3), dtype=torch.float32, device="cpu", **policy
            )

        try:
            plain, asked = make(), make(dispatch_sizes_strides_policy="sizes")
        except (AttributeError, TypeError, RuntimeError):
            return False
        self._look_at(torch, plain, False)
        self._look_at(torch, asked, True)
        return True

    def _look_at(self, torch: Any, tensor: Any, is_custom: bool) -> None:
        """is_custom: its sizes are what some code says."""
        self.library.prof_i_torch_keys_1(
            tensor._cdata, _bits(torch._C._dispatch_keys(tensor)), int(is_custom)
        )

    def _make_more_calls(self, torch: Any) -> None:
        x = torch.ones(2, 1, 3, 4, device="cpu", dtype=torch.int64)
        half = torch.ones(2, 0, device="cpu", dtype=torch.bfloat16)
        truth = torch.ones((), device="cpu", dtype=torch.bool)
        with torch.no_grad():
            self._meets(lambda: torch.mul(x, truth), "aten::mul", [x, truth])
            self._meets(lambda: torch.cat([x, x]), "aten::cat", [[], 0])
            self._meets(lambda: torch.mul(half, half), "aten::mul", [half, half])
            self._meets(lambda: torch.sum(x, 1, keepdim=True), "aten::sum", [x, [], True, None])

    def _prove_values(self, torch: Any) -> None:
        """Inputs that are no tensors, and strides. None of these calls computes anything large."""
        unstrided = 0
        for name in _UNSTRIDED:
            unstrided |= _bits(torch._C.DispatchKeySet(torch._C._parse_dispatch_key(name)))
        self.library.prof_i_torch_values_open_1(unstrided)
        with torch.inference_mode(False), torch.no_grad():
            self._make_calls_with_values(torch)
            self._ask(self.library.prof_i_torch_values_prove_1())
            self._make_calls_with_texts(torch)
        self._ask(self.library.prof_i_torch_values_prove_1())

    def _make_calls_with_values(self, torch: Any) -> None:
        x = torch.ones(2, 3, 4, device="cpu", dtype=torch.float32)
        for number in (2, -3, 2**40 + 5):
            self._meets(lambda: torch.add(x, x, alpha=number), "aten::add", [x, x, number])
        for real in (2.5, -0.1, 1e-30):
            self._meets(lambda: torch.add(x, x, alpha=real), "aten::add", [x, x, real])
        for dims, keep in (([1], True), ([0, 2], False), ([2, 0, 1], True)):
            self._meets(lambda: torch.sum(x, dims, keep), "aten::sum", [x, dims, keep, None])
        for size, stride in (([3, 2], [4, 1]), ([7], [2]), ([2, 2, 2, 3], [12, 4, 4, 1])):
            self._meets(
                lambda: torch.as_strided(x, size, stride),
                "aten::as_strided",
                [x, size, stride, None],
            )
        for tensors in ([x, x.clone()], [x], [x, x, x.clone()]):
            self._meets(lambda: torch.cat(tensors), "aten::cat", [tensors, 0])

    def _meets_with_texts(
        self, call: Callable[[], Any], name: str, inputs: List[Any], concrete: str, strides: str
    ) -> None:
        self._meets(call, name, inputs, texts=(concrete, strides))

    def _make_calls_with_texts(self, torch: Any) -> None:
        x = torch.ones(2, 3, device="cpu", dtype=torch.float32)
        y, flags = x.t(), torch.ones((), device="cpu", dtype=torch.bool)

        meets = self._meets_with_texts
        meets(
            lambda: torch.add(x, x, alpha=-7),
            "aten::add",
            [x, x, -7],
            '["","","-7"]',
            "[[3,1],[3,1],[]]",
        )
        meets(
            lambda: torch.add(y, y, alpha=0.1),
            "aten::add",
            [y, y, 0.1],
            '["","","0.10000000000000001"]',
            "[[1,3],[1,3],[]]",
        )
        meets(
            lambda: torch.add(y, flags, alpha=3.0),
            "aten::add",
            [y, flags, 3.0],
            '["","","3."]',
            "[[1,3],[],[]]",
        )
        meets(
            lambda: torch.sum(y, [1], True),
            "aten::sum",
            [y, [1], True, None],
            '["","[1]","True",""]',
            "[[1,3],[],[],[]]",
        )
        meets(
            lambda: torch.sum(x, [0, 1], False),
            "aten::sum",
            [x, [0, 1], False, None],
            '["","[0, 1]","False",""]',
            "[[3,1],[],[],[]]",
        )
        meets(
            lambda: x.reshape([]) if x.numel() == 1 else x[:1, :1].reshape([]),
            "aten::reshape",
            [[], []],
            '["","[]"]',
            "[[3,1],[]]",
        )
        meets(lambda: torch.cat([x, x]), "aten::cat", [[], 0], '["","0"]', "[[[3,1],[3,1]],[]]")
        meets(
            lambda: x[flags.new_zeros((), dtype=torch.int64)[None]],
            "aten::index",
            [x, []],
            '["",""]',
            "[[3,1],[]]",
        )
        sparse = x.to_sparse()
        meets(lambda: torch.mul(sparse, 2.0), "aten::mul", [sparse, []], '["",""]', "[[],[]]")


_lock = threading.Lock()
_opened: Any = None


def _fresh_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_fresh_lock)  # another thread may have had it


def opened(path: str, torch: Any) -> Calls:
    """The process's one. What fails is tried again the next time: a mode of torch's may have been
    in the way."""
    global _opened
    with _lock:
        if _opened is None:
            _opened = Calls(path, torch)
        return _opened  # type: ignore[no-any-return]
