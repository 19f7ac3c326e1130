#!/usr/bin/env bash
# torch-releases.sh VERSION/TORCHVISION...: the tests of prof.torch.observe() under other releases of torch than make test-torch has, one after the other; each is brought from PyPI into a folder that goes again (5 to 7 GB, a minute or two).
#   tests/python/torch-releases.sh 2.5.1/0.20.1 2.9.1/0.24.1
# docs/python.md says of which it was run.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
[ $# -gt 0 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
tools/build.sh dev >/dev/null || exit
export PROF_LIBRARY=$PWD/build/dev/libprof.so PYTHONPATH=$PWD/bindings/python
status=0
folder=
trap 'rm -rf "$folder"' EXIT
for pair in "$@"; do
  folder=$(mktemp -d "${TMPDIR:-/tmp}/prof-torch-XXXXXX")
  python3 -m venv "$folder"
  if ! TMPDIR=$folder "$folder/bin/python" -m pip install --quiet --no-cache-dir --disable-pip-version-check "torch==${pair%/*}" "torchvision==${pair#*/}" 'numpy<2.3'; then
    echo "torch ${pair%/*}: pip could not install it"
    status=1
    continue
  fi
  for test in tests/python/test_observe*.py; do
    tests/python/run.sh "$PWD/$test" "with torch ${pair%/*}" "$folder/bin/python" || status=1
  done
  rm -rf "$folder"
done
exit $status
