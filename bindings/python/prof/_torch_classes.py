"""Rows and lists of prof's count as objects of torch's own classes, where torch is imported: so
isinstance() says, which torch.autograd.profiler_util.FunctionEventAvg.add() asks. Nothing of
torch's is changed."""

from __future__ import annotations

import sys
from typing import Any, List, Tuple

_HOME = "torch.autograd.profiler_util"


def _class_of(this: Any) -> type:
    """torch's class of the same name, if it is there."""
    own = type(this)
    theirs = getattr(sys.modules.get(_HOME), own.__name__, None)
    return theirs if isinstance(theirs, type) else own


def _made(kind: Any) -> Any:
    return kind.__new__(kind)


class AsTorchs:
    """type() says prof's class, isinstance() says both."""

    __slots__ = ()
    __class__ = property(_class_of)

    def __dir__(self) -> List[str]:
        """object's asks __class__."""
        return sorted({*dir(type(self)), *getattr(self, "__dict__", ())})

    def __reduce_ex__(self, protocol: Any) -> Tuple[Any, ...]:
        """For copy and pickle, which compare the class that is made with __class__."""
        found: Any = object.__reduce_ex__(self, max(int(protocol), 2))
        return (_made, (type(self),), *found[2:])
