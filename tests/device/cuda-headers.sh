#!/usr/bin/env bash
# What src/cuda, tests/gpu and examples/minilm declare by themselves, against <cuda.h> of CUDA 11.8, 12.0, 12.9 and 13.5, CUPTI's headers of these and 13.0, and <nvml.h> of 12.9 and 13.5; the example's against <nvrtc.h>, <cublas_v2.h> and <cuda.h> of 11.8, 12.9 and 13.0.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$(cd "$here/../.." && pwd)
python=python3
[ -x "$root/.venv/bin/python" ] && python=$root/.venv/bin/python
toolkit=$("$python" "$here/headers/fetch_toolkit.py") || { echo "failed: the toolkit's headers could not be fetched"; exit 1; }
folder=$("$here/headers/fetch-cuda.sh") || { echo "failed: the headers could not be fetched"; exit 1; }
failed=0 count=0

# usage: compare NAME VERSION FOLDER-OF-HEADERS...
compare() {
  local name=$1 version=$2 includes=()
  shift 2
  for path; do includes+=(-isystem "$path"); done
  if ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -I"$root/include" "${includes[@]}" "$here/headers/$name.cpp" -o "$work/compare" && "$work/compare"; then
    echo "ok: what is declared here is as CUDA $version has it: $name"
  else
    echo "failed: what is declared here differs from CUDA $version's: $name"
    failed=1
  fi
  count=$((count + 1))
}

for version in 11.8 12.0 12.9 13.5; do compare cuda $version "$folder/$version"; done
for version in 11.8 12.0 12.9 13.5; do compare gpu $version "$folder/$version"; done
for version in 12.9 13.5; do compare nvml $version "$folder/$version"; done
for version in 11.8 12.0 12.9 13.5; do compare cupti $version "$here/headers/none" "$folder/$version/cupti" "$folder/$version"; done
for version in 11.8 12.9 13.0; do compare model_cuda $version "$toolkit/$version"; done
compare cupti 13.0 "$here/headers/none" "$folder/13.0/cupti" "$folder/13.5"
[ "$count" -eq 18 ] || { echo "failed: $count headers, not 18"; exit 1; }
exit "$failed"
