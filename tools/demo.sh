#!/usr/bin/env bash
# usage: tools/demo.sh [FLAG...]
#
# Fetches the model if the user's cache does not have it, with the pip of .venv. Then runs:
# - build/release's minilm-demo on the processor,
# - the same on an OpenCL device, if there is one.
# - The same runtime, called from Python.
# The traces: build/minilm-trace.json, build/minilm-opencl-trace.json and
# build/minilm-python-trace.json.
set -euo pipefail
cd "$(dirname "$0")/.."

model=$(PATH=$PWD/.venv/bin:$PATH examples/minilm/fetch-model.sh)
build/release/examples/minilm-demo --model "$model" --out build/minilm-trace.json "$@"

title='The same on two queues of an OpenCL device (--device opencl)'
printf '\n%s\n\n' "$title"
status=0
build/release/examples/minilm-demo --model "$model" --out build/minilm-opencl-trace.json \
  --device opencl --quick || status=$?
case $status in
  0) ;;
  3) printf '%s: left out, for the reason above\n' "$title" ;;
  *) exit $status ;;
esac

title='The same runtime as a shared library, called from Python (examples/minilm/minilm.py)'
if ! python3 -c 'import ctypes, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
  printf '\n%s: left out, for there is no python3 from 3.9 on with ctypes\n' "$title"
  exit 0
fi
printf '\n%s\n\n' "$title"
PYTHONPATH=bindings/python PYTHONDONTWRITEBYTECODE=1 \
  MINILM_LIBRARY=build/release/examples/libminilm.so \
  python3 examples/minilm/minilm.py --model "$model" --out build/minilm-python-trace.json
