#!/usr/bin/env bash
# usage: fetch-cuda.sh [FOLDER [VERSION...]]
#
# Fetches NVIDIA's own wheels from PyPI for these releases, or for all. Puts into FOLDER/VERSION
# (.cache/cuda of the source tree) <cuda.h>, <nvml.h>, CUPTI's headers (cupti) and its library.
# Hashes are checked. Nothing of the wheels is run here. Prints FOLDER.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
folder=${1:-$root/.cache/cuda}
wanted=" ${*:2} "

# Three lines for each: version and package; sha256 of its wheel; names here = paths in the wheel.
releases='
11.8 nvidia-cuda-runtime-cu11==11.8.89
  92d04069a987e1fbc9213f8376d265df0f7bb42617d44f5eda1f496acea7f2d1
  cuda.h=nvidia/cuda_runtime/include/cuda.h
12.0 nvidia-cuda-runtime-cu12==12.0.107
  9ab985dd92728e1c577bb75ae83dcc42357ce7c00016c782e8b196f6fea05b91
  cuda.h=nvidia/cuda_runtime/include/cuda.h
12.9 nvidia-cuda-runtime-cu12==12.9.79
  25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3
  cuda.h=nvidia/cuda_runtime/include/cuda.h
13.5 nvidia-cuda-runtime==13.5.37
  df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d
  cuda.h=nvidia/cu13/include/cuda.h
12.9 nvidia-nvml-dev-cu12==12.9.79
  8bb367913c62cb65be9ae386c58dbf573f1f9e2f01cae54abb87bf5f63c6069e
  nvml.h=nvidia/nvml_dev/include/nvml.h
13.5 nvidia-nvml-dev==13.5.37
  7394fcbefa9ba537e8238cbb1caa4cd2db6bbfbff208d217a8a884947113ae6d
  nvml.h=nvidia/cu13/include/nvml.h
11.8 nvidia-cuda-cupti-cu11==11.8.87
  4191a17913a706b5098681280cd089cd7d8d3df209a6f5cb79384974a96d24f2
  cupti=nvidia/cuda_cupti/include libcupti.so=nvidia/cuda_cupti/lib/libcupti.so.11.8
12.0 nvidia-cuda-cupti-cu12==12.0.90
  2e447fb1a7099633aa91e48840c15088e43d03faa1cfd2494b9173651ff31cd9
  cupti=nvidia/cuda_cupti/include libcupti.so=nvidia/cuda_cupti/lib/libcupti.so.12
12.9 nvidia-cuda-cupti-cu12==12.9.79
  096bcf334f13e1984ba36685ad4c1d6347db214de03dbb6eebb237b41d9d934f
  cupti=nvidia/cuda_cupti/include libcupti.so=nvidia/cuda_cupti/lib/libcupti.so.12
13.0 nvidia-cuda-cupti==13.0.85
  4eb01c08e859bf924d222250d2e8f8b8ff6d3db4721288cf35d14252a4d933c8
  cupti=nvidia/cu13/include libcupti.so=nvidia/cu13/lib/libcupti.so.13
13.5 nvidia-cuda-cupti==13.5.25
  9dcca41c12a734192b14e7128ae116bc9ce1b9da686e2ebf48ae7a4415f76650
  cupti=nvidia/cu13/include
'
python=python3
[ -x "$root/.venv/bin/python" ] && python=$root/.venv/bin/python

# Several tests may ask at once, of a tree that has none of it yet.
mkdir -p "$folder"
exec 9>"$folder/lock"
flock 9

# Is all of that there?
has() {
  local version=$1 item
  shift
  for item; do [ -e "$folder/$version/${item%%=*}" ] || return 1; done
}

while read -r version package; do
  [ -n "$version" ] || continue
  read -r sha256
  read -ra items
  case $wanted in "  " | *" $version "*) ;; *) continue ;; esac
  has "$version" "${items[@]}" && continue
  new=$folder/$version.new.$$
  trap 'rm -rf "$new"' EXIT
  mkdir -p "$new"
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$new" \
    --only-binary=:all: --platform manylinux2014_x86_64 --platform manylinux1_x86_64 \
    --platform manylinux_2_25_x86_64 "$package" >&2
  wheel=$(echo "$new"/*.whl)
  echo "$sha256  $wheel" | sha256sum --check --quiet >&2
  "$python" -m zipfile -e "$wheel" "$new"
  mkdir -p "$folder/$version"
  for item in "${items[@]}"; do mv -T "$new/${item#*=}" "$folder/$version/${item%%=*}"; done
  rm -rf "$new"
done <<<"$releases"
echo "$folder"
