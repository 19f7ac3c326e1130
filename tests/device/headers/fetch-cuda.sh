#!/usr/bin/env bash
# usage: fetch-cuda.sh [FOLDER]
# Puts <cuda.h> of four releases, from 11.8 to 13.5, and <nvml.h> of two into FOLDER/VERSION (.cache/cuda of the source tree), out of NVIDIA's own wheels on PyPI, which are unpacked and never run; hashes are checked. Prints FOLDER.
set -euo pipefail
root=$(cd "$(dirname "$0")/../../.." && pwd)
folder=${1:-$root/.cache/cuda}

# version, package, sha256 of its wheel, the header in it
releases='
11.8 nvidia-cuda-runtime-cu11==11.8.89  92d04069a987e1fbc9213f8376d265df0f7bb42617d44f5eda1f496acea7f2d1 nvidia/cuda_runtime/include/cuda.h
12.0 nvidia-cuda-runtime-cu12==12.0.107 9ab985dd92728e1c577bb75ae83dcc42357ce7c00016c782e8b196f6fea05b91 nvidia/cuda_runtime/include/cuda.h
12.9 nvidia-cuda-runtime-cu12==12.9.79  25bba2dfb01d48a9b59ca474a1ac43c6ebf7011f1b0b8cc44f54eb6ac48a96c3 nvidia/cuda_runtime/include/cuda.h
13.5 nvidia-cuda-runtime==13.5.37       df2b79a8852f10d1fef8c848489c49eebb5754051bf870202a862831412b179d nvidia/cu13/include/cuda.h
12.9 nvidia-nvml-dev-cu12==12.9.79    8bb367913c62cb65be9ae386c58dbf573f1f9e2f01cae54abb87bf5f63c6069e nvidia/nvml_dev/include/nvml.h
13.5 nvidia-nvml-dev==13.5.37         7394fcbefa9ba537e8238cbb1caa4cd2db6bbfbff208d217a8a884947113ae6d nvidia/cu13/include/nvml.h
'
python=python3
[ -x "$root/.venv/bin/python" ] && python=$root/.venv/bin/python
while read -r version package sha256 inside; do
  [ -n "$version" ] || continue
  [ -e "$folder/$version/$(basename "$inside")" ] && continue
  new=$folder/$version.new.$$
  trap 'rm -rf "$new"' EXIT
  mkdir -p "$new"
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --dest "$new" --only-binary=:all: --platform manylinux2014_x86_64 --platform manylinux1_x86_64 "$package" >&2
  wheel=$(echo "$new"/*.whl)
  echo "$sha256  $wheel" | sha256sum --check --quiet >&2
  "$python" -m zipfile -e "$wheel" "$new"
  mkdir -p "$folder/$version"
  mv "$new/$inside" "$folder/$version/"
  rm -rf "$new"
done <<<"$releases"
echo "$folder"
