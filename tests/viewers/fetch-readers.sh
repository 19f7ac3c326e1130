#!/usr/bin/env bash
# usage: fetch-readers.sh
# Puts the programs that read torch.profiler's traces into .venv-readers (400 MB): TensorBoard's
# plug-in and HTA. They have an environment of their own, since HTA needs a pandas before 3; its
# notebook, which nothing here uses, is left out. Prints the environment's python.
set -euo pipefail
cd "$(dirname "$0")/../.."
judges='torch-tb-profiler==0.4.3 HolisticTraceAnalysis==0.5.0'
others='tensorboard pandas<3 numpy plotly networkx psutil pyyaml pydot setuptools<81'

folder=.venv-readers
exec 9<tests/viewers/fetch-readers.sh
flock 9 # one at a time: tests run at once, and what one of them has must stay
if [ "$(cat $folder/prof-packages 2>/dev/null)" != "$judges $others" ]; then
  rm -rf $folder
  python3 -m venv $folder >&2
  # --no-compile: a test imports a part of the files, and compiles those itself.
  pip() { tools/again.sh $folder/bin/python -m pip install --quiet --no-compile \
    --disable-pip-version-check "$@" >&2; }
  # shellcheck disable=SC2086 # lists
  { pip $others && pip --no-deps $judges; }
  echo "$judges $others" >$folder/prof-packages
fi
echo "$PWD/$folder/bin/python"
