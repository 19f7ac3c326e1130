#!/usr/bin/env bash
# beside-torch.sh: installs the real torch from PyPI into .venv-torch if the disk has room (5.4 GB,
# a minute or two). Runs the tests that compare prof's tables, schedules and rows with
# torch.profiler's. The guides' snippets run on the package as pip installs it from here, the others
# on build/dev.
# --install: installs torch, and runs no test.
# PROF_LONG=1: all tests of prof.torch.observe() as well, and single tests that take long.
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
  [ "$free" -ge $needed_gib ] ||
    skip "torch takes $needed_gib GiB while it is installed; $free are free"
  rm -rf .venv-torch
  python3 -m venv .venv-torch || skip "python3 -m venv failed"
  # --no-compile: of its 10 000 files the tests import a tenth.
  # shellcheck disable=SC2086 # a list
  TMPDIR=$PWD/.venv-torch tools/again.sh .venv-torch/bin/python -m pip install --quiet \
    --no-compile --no-cache-dir --disable-pip-version-check $packages ||
    skip "pip could not install $packages"
  # The tests write no bytecode. Without it each process compiles these modules again, which takes
  # as long as all else that it imports. An optimizer's first step imports torch._dynamo.
  env -u PYTHONDONTWRITEBYTECODE -u PYTHONPYCACHEPREFIX .venv-torch/bin/python \
    -c 'import torch, torch.profiler, torchvision, torch._dynamo' >/dev/null 2>&1
  echo "$packages" >$stamp
fi
[ "${1:-}" != --install ] || exit 0
tools/build.sh dev >/dev/null || exit
python=$PWD/.venv-torch/bin/python installed=$PWD/build/installed-torch
version=$("$python" -c 'import sys; print("%d.%d with torch" % sys.version_info[:2])')
status=0

# The package, compiled by the machine's own compiler; nothing is written into the checkout. ccache,
# where tools/cache.bash has found it, has the objects from check-wheel.sh.
install_package() {
  rm -rf "$installed"
  CC="${CMAKE_C_COMPILER_LAUNCHER:-} ${CC:-cc}" tools/again.sh "$python" -m pip install --quiet \
    --no-compile --disable-pip-version-check --no-deps --target "$installed" ./bindings/python
}

on_installed() { # TEST
  if ! (unset PROF_LIBRARY && cd / && PYTHONPATH=$installed "$python" -c '
import sys, prof
from prof._library import C
sys.exit(not all(path.startswith(sys.argv[1]) for path in (prof.__file__, C.path)))' \
    "$installed"); then
    echo "failed: prof is not the package that was installed into $installed"
    echo "0 passed, 1 failed, 0 skipped"
    return 1
  fi
  env -u PROF_LIBRARY PYTHONPATH="$installed" tests/python/run.sh "$1" "$version, installed" \
    "$python"
}

on_build() { # TEST
  PROF_LIBRARY=$PWD/build/dev/libprof.so PYTHONPATH=$PWD/bindings/python \
    tests/python/run.sh "$1" "$version" "$python"
}

tests=(tests/python/test_against_torch.py tests/python/test_against_torch_imports.py
  tests/python/test_torch_memory.py tests/python/test_torch_install.py
  tests/python/test_torch_ranges.py tests/python/test_torch_face.py
  tests/python/test_torch_guides.py tests/python/test_observe_bad_input.py
  tests/python/test_observe.py tests/python/test_observe_life.py
  tests/python/test_observe_table.py tests/python/test_observe_own_calls.py
  tests/python/test_observe_numbers.py tests/python/test_torch_rows.py
  tests/python/test_torch_threads.py tests/python/test_torch_overlaps.py
  tests/python/test_torch_inputs.py)
[ "${PROF_LONG:-0}" != 1 ] ||
  tests=(tests/python/test_against_torch*.py tests/python/test_torch_[fgimrt]*.py
    tests/python/test_torch_overlaps.py tests/python/test_observe*.py \
      tests/python/test_python_ids.py
    tests/python/test_torch_viewers.py)
install_package || status=1
for test in "${tests[@]}"; do
  if [[ $test == */test_torch_guides.py ]]; then
    on_installed "$PWD/$test" || status=1
  else
    on_build "$PWD/$test" || status=1
  fi
done
exit $status
