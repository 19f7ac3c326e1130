#!/usr/bin/env bash
# kernels.cu by the vendors' real compilers, called as the engine calls them: NVRTC 13.0, out of
# NVIDIA's wheels, if these are available, and the hipRTC of Debian's HIP 5.2. PROF_LONG=1: also
# NVRTC 11.8 and 12.9. None of them needs a device, and nothing that they make is run.
set -uo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 count=0
${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -I"$root/include" -I"$root/examples/minilm" \
  -I"$build/examples/generated" "$root/tests/minilm/compilers/compile.c" \
  "$root"/examples/minilm/{gpu/compiler,gpu/library,failure}.c -ldl -o "$work/compile" ||
  { echo "failed: compilers/compile.c does not compile"; exit 1; }

# usage: compiles WHAT LIBRARY nvrtc|hiprtc OPTION WORDS
compiles() {
  local said
  if said=$("$work/compile" "$2" "$3" "$4" 2>&1) && grep -q -- "$5" <<<"$said"; then
    echo "ok: $1 $4: $said"
  else
    echo "failed: $1 $4: $said"
    failed=1
  fi
  count=$((count + 1))
}

# What is no device is refused, with what the compiler says. (HIP 5's ends the program then.)
refuses() {
  local said
  if said=$("$work/compile" "$2" "$3" "$4" 2>&1) ||
    ! grep -q 'the kernels do not compile (error [0-9]*): ..*' <<<"$said"; then
    echo "failed: $1 took $4: $said"
    failed=1
  fi
  count=$((count + 1))
}

python=python3
[ -x "$root/.venv/bin/python" ] && python=$root/.venv/bin/python
releases=(13.0)
if [ -n "${PROF_LONG:-}" ]; then releases=(11.8 12.9 13.0); fi
if folder=$("$python" "$root/tests/device/headers/fetch_toolkit.py" "$root/.cache/cuda-toolkit" \
  "${releases[@]}" 2>"$work/why"); then
  for library in "${releases[@]/#/$folder/}"; do
    library=$(echo "$library"/libnvrtc.so.*)
    export LD_LIBRARY_PATH=${library%/*} # for libnvrtc-builtins beside it
    what="NVRTC $(basename "${library%/*}")"
    for number in 80 90; do
      compiles "$what" "$library" nvrtc "--gpu-architecture=compute_$number" \
        "PTX .target sm_$number"
      compiles "$what" "$library" nvrtc "--gpu-architecture=sm_$number" ELF
    done
    case $library in
      *.so.13) compiles "$what" "$library" nvrtc --gpu-architecture=sm_100 ELF ;;
      *) compiles "$what" "$library" nvrtc --gpu-architecture=sm_70 ELF ;;
    esac
    refuses "$what" "$library" nvrtc --gpu-architecture=sm_1
  done
else
  echo "skip: no NVRTC: $(tail -1 "$work/why")"
fi
unset LD_LIBRARY_PATH
hip=$(ldconfig -p | sed -n 's/.*libamdhip64.so.5 .*=> //p' | head -1)
if [ -n "$hip" ]; then
  for name in gfx906 gfx90a gfx1030; do
    compiles "HIP 5's hipRTC" "$hip" hiprtc "--gpu-architecture=$name" bytes
  done
else
  echo "skip: no libamdhip64.so.5: apt-get install libamdhip64-dev"
fi
[ "$count" -gt 0 ] || exit 77
exit "$failed"
