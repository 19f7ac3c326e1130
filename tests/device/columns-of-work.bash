#!/usr/bin/env bash
# usage: columns-of-work.bash CAPTURE LAUNCH COPY
# A capture of an emulated device with calls: 100 kernels and 100 copies, each from a call of that
# name. In a table of columns, each row of work has the number of its call.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
source=$(realpath "$here/../..")
python=$source/.venv/bin/python
unset LD_LIBRARY_PATH ROCP_TOOL_LIBRARIES CUDA_INJECTION64_PATH
"$python" -c 'import pyarrow' 2>/dev/null ||
  { echo "not checked: columns, for $python has no pyarrow"; exit 0; }
export PROF_PYTHON_PROGRAM=$python PYTHONPATH=$source/bindings/python
PROF_LIBRARY=$build/libprof.so "$build/prof" dump "$1" -o columns.parquet 2>columns.err ||
  { echo "no table of columns: $(cat columns.err)"; exit 1; }
"$python" - "$2" "$3" <<'PYTHON'
import collections
import sys

import pyarrow.parquet

rows = pyarrow.parquet.read_table("columns.parquet").to_pylist()
work = {r["correlation"]: r["name"] for r in rows if r["kind"] == "device"}
calls = {r["correlation"]: r["name"] for r in rows if r["kind"] == "scope"}
calls.pop(None, None)
pairs = collections.Counter((work[n].split()[0], calls.get(n)) for n in work)
expected = {("matmul", sys.argv[1]): 100, ("Memcpy", sys.argv[2]): 100}
assert pairs == expected and len(calls) == 200, (pairs, len(calls))
PYTHON
