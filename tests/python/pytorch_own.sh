#!/usr/bin/env bash
# pytorch_own.sh [CHECKOUT [PYTHON]]: the tests that PyTorch has of its own profiler, on torch and
# with prof in its place, on a CPU. CHECKOUT is a clone of github.com/pytorch/pytorch, of PYTHON's
# release, or of github.com/intel/torch-xpu-ops, which has adapted copies. PROF_PYTORCH_CHECKOUT is
# the default. PYTHON is by default that of .venv-torch, which beside-torch.sh makes.
# docs/reference/torch-tests.md lists the tests that pass on torch alone. Fails if that page is
# wrong.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
checkout=${1:-${PROF_PYTORCH_CHECKOUT:-}} python=${2:-$PWD/.venv-torch/bin/python}
report=$PWD/build/report/pytorch-own runner=$PWD/tests/python/pytorch_own.py

skip() {
  echo "skip: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 77
}

[ -n "$checkout" ] || skip "PROF_PYTORCH_CHECKOUT names no checkout of PyTorch's"
tests=()
for file in test/profiler/test_profiler.py test/profiler/test_record_function.py \
  test/xpu/profiler/test_profiler_xpu.py; do
  [ ! -f "$checkout/$file" ] || tests+=("$(realpath "$checkout/$file")")
done
[ ${#tests[@]} -gt 0 ] ||
  skip "$checkout has neither test/profiler/ nor test/xpu/profiler/ with tests of the profiler"
[ -x "$python" ] || skip "there is no $python: tests/python/beside-torch.sh makes it"
tools/build.sh dev >/dev/null || exit
mkdir -p "$report"
# What torch.testing._internal imports, and a wheel of torch does not bring.
if ! PYTHONPATH=$report/site "$python" -c 'import expecttest' 2>/dev/null; then
  tools/again.sh "$python" -m pip install --quiet --disable-pip-version-check \
    --target "$report/site" expecttest || skip "pip could not install expecttest"
fi
export PROF_LIBRARY=$PWD/build/dev/libprof.so PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$PWD/bindings/python:$report/site
for way in torch prof; do
  rm -f "$report/$way.tsv"
  (cd "$report" && exec "$python" "$runner" $way "$report/$way.tsv" "${tests[@]}") \
    >"$report/$way.log" 2>&1 </dev/null
  [ -f "$report/$way.tsv" ] || { tail -n 5 "$report/$way.log"; exit 1; }
done
"$python" "$runner" compare docs/reference/torch-tests.md "$report/torch.tsv" "$report/prof.tsv"
