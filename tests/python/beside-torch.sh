#!/usr/bin/env bash
# beside-torch.sh: brings the real torch from PyPI into .venv-torch (5.4 GB, a minute or two) where the disk
# has room, and runs the tests that hold prof's tables, schedules and rows against torch.profiler's.
# PROF_LONG=1: all tests of prof.torch.observe() as well, and those of single tests that take long.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
packages='torch==2.15.0 torchvision==0.29.2 numpy'
stamp=.venv-torch/prof-packages
needed_gib=16 # what pip unpacks, and its copies meanwhile

skip() {
  echo "skip: $1"
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
}

if [ "$(cat $stamp 2>/dev/null)" != "$packages" ]; then
  free=$(df -BG --output=avail . | tail -n 1 | tr -dc 0-9)
  [ "$free" -ge $needed_gib ] || skip "torch takes $needed_gib GiB while it is installed; $free are free"
  rm -rf .venv-torch
  python3 -m venv .venv-torch || skip "python3 -m venv failed"
  # --no-compile: of its 10 000 files a test imports a tenth, and compiles those itself.
  # shellcheck disable=SC2086 # a list
  TMPDIR=$PWD/.venv-torch tools/again.sh .venv-torch/bin/python -m pip install --quiet --no-compile \
    --no-cache-dir --disable-pip-version-check $packages ||
    skip "pip could not install $packages"
  echo "$packages" >$stamp
fi
tools/build.sh dev >/dev/null || exit
export PROF_LIBRARY=$PWD/build/dev/libprof.so PYTHONPATH=$PWD/bindings/python
version=$(.venv-torch/bin/python -c 'import sys; print("%d.%d with torch" % sys.version_info[:2])')
status=0
tests=(tests/python/test_against_torch.py tests/python/test_torch_memory.py
  tests/python/test_torch_install.py tests/python/test_torch_ranges.py
  tests/python/test_torch_guides.py tests/python/test_observe_bad_input.py
  tests/python/test_observe.py tests/python/test_observe_table.py)
[ "${PROF_LONG:-0}" != 1 ] ||
  tests=(tests/python/test_against_torch.py tests/python/test_torch_[gimr]*.py
    tests/python/test_observe*.py tests/python/test_torch_viewers.py)
for test in "${tests[@]}"; do
  tests/python/run.sh "$PWD/$test" "$version" "$PWD/.venv-torch/bin/python" || status=1
done
exit $status
