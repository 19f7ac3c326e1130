#!/usr/bin/env bash
# Compares what src/hip and examples/minilm declare with AMD's headers: Debian's of HIP 5.2, and
# those of HIP 7.1 and rocprofiler-sdk 1.2 in triton's wheel, if it is available. HIP_INCLUDE names
# others, by ':'.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python=python3
[ -x "$root/.venv/bin/python" ] && python=$root/.venv/bin/python
fetched=$("$python" "$here/headers/fetch_amd.py" 2>"$work/why") ||
  echo "skip: no headers of HIP 7 and rocprofiler-sdk: $(tail -1 "$work/why")"
failed=0 count=0

# usage: compare FOLDER SOURCE WHAT [WHO]
compare() {
  if ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -I"$root/include" -isystem "$1" \
      "$here/headers/$2" -o "$work/compare" &&
    "$work/compare"; then
    echo "ok: what ${4:-src/hip} declares is as the header of $3 has it"
  else
    echo "failed: what ${4:-src/hip} declares differs from the header of $3"
    failed=1
  fi
  count=$((count + 1))
}

IFS=: read -ra folders <<<"${HIP_INCLUDE:-}"
for folder in /usr/include "${fetched:-/nowhere}" "${folders[@]}"; do
  [ -e "$folder/hip/hip_runtime_api.h" ] || continue
  version=$(sed -n 's/^#define HIP_VERSION_\(MAJOR\|MINOR\) //p' "$folder/hip/hip_version.h" |
    paste -sd.)
  compare "$folder" hip.cpp "HIP $version"
  [ -e /usr/include/hip/hiprtc.h ] && compare "$folder" model_hip.cpp "HIP $version" examples/minilm
done
[ -e /usr/include/rocm_smi/rocm_smi.h ] && compare /usr/include/hip rocm_smi.cpp "Debian's ROCm SMI"
for folder in "${fetched:-/nowhere}" "${folders[@]}"; do
  [ -e "$folder/rocprofiler-sdk/fwd.h" ] || continue
  version=$(sed -n 's/^#define ROCPROFILER_SDK_VERSION_\(MAJOR\|MINOR\) *\([0-9]*\).*/\2/p' \
    "$folder/rocprofiler-sdk/version.h" | paste -sd.)
  compare "$folder" rocprofiler.cpp "rocprofiler-sdk $version"
done
[ "$count" -gt 0 ] ||
  { echo "skip: hip/hip_runtime_api.h is missing: apt-get install libamdhip64-dev"; exit 77; }
exit "$failed"
