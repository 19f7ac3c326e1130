#!/usr/bin/env bash
# What src/hip declares by itself, against Debian's <hip/hip_runtime_api.h> (HIP 5.2), and others that HIP_INCLUDE names, by ':'.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 count=0
IFS=: read -ra folders <<<"${HIP_INCLUDE:-}"
for folder in /usr/include "${folders[@]}"; do
  [ -e "$folder/hip/hip_runtime_api.h" ] || continue
  version=$(sed -n 's/^#define HIP_VERSION_\(MAJOR\|MINOR\) //p' "$folder/hip/hip_version.h" | paste -sd.)
  if ${CXX:-c++} -std=c++17 -Wall -Wextra -Werror -isystem "$folder" "$here/headers/hip.cpp" -o "$work/compare" && "$work/compare"; then
    echo "ok: what src/hip declares is as the header of HIP $version has it"
  else
    echo "failed: what src/hip declares differs from the header of HIP $version"
    failed=1
  fi
  count=$((count + 1))
done
[ "$count" -gt 0 ] || { echo "skip: hip/hip_runtime_api.h is missing: apt-get install libamdhip64-dev"; exit 77; }
exit "$failed"
