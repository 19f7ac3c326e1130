#!/usr/bin/env bash
# Compares what src/cuda, tests/gpu and examples/minilm declare with NVIDIA's headers of the oldest
# and the newest release.
# - <cuda.h> and CUPTI's headers: CUDA 11.8 and 13.5.
# - <nvml.h>: 13.5.
# - <nvrtc.h> and <cublas_v2.h>: 13.0.
# PROF_LONG=1: Also 12.0, 12.9, CUPTI's of 13.0, and the example's of 11.8 and 12.9. To fetch a
# release takes longer than to compare.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$(cd "$here/../.." && pwd)
python=python3
[ -x "$root/.venv/bin/python" ] && python=$root/.venv/bin/python
releases=(11.8 13.5) nvml=(13.5) toolkits=(13.0) expected=8
if [ -n "${PROF_LONG:-}" ]; then
  releases=(11.8 12.0 12.9 13.5) nvml=(12.9 13.5) toolkits=(11.8 12.9 13.0) expected=18
fi
toolkit=$("$python" "$here/headers/fetch_toolkit.py" "$root/.cache/cuda-toolkit" \
  "${toolkits[@]}") ||
  { echo "failed: the toolkit's headers could not be fetched"; exit 1; }
folder=$("$here/headers/fetch-cuda.sh" "$root/.cache/cuda" 13.0 "${releases[@]}") ||
  { echo "failed: the headers could not be fetched"; exit 1; }
failed=0 count=0

# usage: compare NAME VERSION FOLDER-OF-HEADERS...
compare() {
  local name=$1 version=$2 includes=()
  shift 2
  for path; do includes+=(-isystem "$path"); done
  if ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -I"$root/include" "${includes[@]}" \
      "$here/headers/$name.cpp" -o "$work/compare" &&
    "$work/compare"; then
    echo "ok: what is declared here is as CUDA $version has it: $name"
  else
    echo "failed: what is declared here differs from CUDA $version's: $name"
    failed=1
  fi
  count=$((count + 1))
}

for version in "${releases[@]}"; do compare cuda $version "$folder/$version"; done
for version in "${releases[@]}"; do compare gpu $version "$folder/$version"; done
for version in "${nvml[@]}"; do compare nvml $version "$folder/$version"; done
for version in "${releases[@]}"; do
  compare cupti $version "$here/headers/none" "$folder/$version/cupti" "$folder/$version"
done
for version in "${toolkits[@]}"; do compare model_cuda $version "$toolkit/$version"; done
[ -z "${PROF_LONG:-}" ] ||
  compare cupti 13.0 "$here/headers/none" "$folder/13.0/cupti" "$folder/13.5"
[ "$count" -eq "$expected" ] || { echo "failed: $count headers, not $expected"; exit 1; }
exit "$failed"
