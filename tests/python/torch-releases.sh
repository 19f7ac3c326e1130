#!/usr/bin/env bash
# torch-releases.sh TORCH/TORCHVISION[/PYTHON]...: runs the tests of prof.torch.observe() under
# other releases of torch, or another Python, than make test-torch has. It runs one after the other.
# Each is installed from PyPI into a folder that is removed again (5 to 7 GB, a minute or two).
# Example: `tests/python/torch-releases.sh 2.5.1/0.20.1 2.15.0/0.29.2/python3.13`
#
# docs/reference/pytorch.md says which releases it was run with.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit
[ $# -gt 0 ] || { sed -n '2,3s/^# //p' "$0" >&2; exit 2; }
tools/build.sh dev >/dev/null || exit
export PROF_LIBRARY=$PWD/build/dev/libprof.so PYTHONPATH=$PWD/bindings/python
status=0
folder=
trap 'rm -rf "$folder"' EXIT
for release in "$@"; do
  IFS=/ read -r torch torchvision python <<<"$release"
  rm -rf "$folder"
  folder=$(mktemp -d "${TMPDIR:-/tmp}/prof-torch-XXXXXX")
  "${python:-python3}" -m venv "$folder" ||
    { echo "torch $torch: ${python:-python3} makes no environment"; status=1; continue; }
  if ! TMPDIR=$folder "$folder/bin/python" -m pip install --quiet --no-cache-dir \
    --disable-pip-version-check "torch==$torch" "torchvision==$torchvision" 'numpy<2.3'; then
    echo "torch $torch: pip could not install it"
    status=1
    continue
  fi
  for test in tests/python/test_observe*.py tests/python/test_torch_[im]*.py; do
    tests/python/run.sh "$PWD/$test" "${python:-python3} with torch $torch" "$folder/bin/python" ||
      status=1
  done
done
exit $status
