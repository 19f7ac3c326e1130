#!/usr/bin/env bash
# What src/cuda declares by itself, against <cuda.h> of CUDA 11.8, 12.0, 12.9 and 13.5, and <nvml.h> of 12.9 and 13.5.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
folder=$("$here/headers/fetch-cuda.sh") || { echo "failed: the headers could not be fetched"; exit 1; }
failed=0 count=0
for header in "$folder"/*/cuda.h "$folder"/*/nvml.h; do
  name=$(basename "$header" .h) version=$(basename "$(dirname "$header")")
  if ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -isystem "$(dirname "$header")" "$here/headers/$name.cpp" -o "$work/compare" && "$work/compare"; then
    echo "ok: what src/cuda declares is as $name.h of CUDA $version has it"
  else
    echo "failed: what src/cuda declares differs from $name.h of CUDA $version"
    failed=1
  fi
  count=$((count + 1))
done
[ "$count" -eq 6 ] || { echo "failed: $count headers, not 6"; exit 1; }
exit "$failed"
