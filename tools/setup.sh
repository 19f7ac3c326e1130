#!/usr/bin/env bash
# usage: tools/setup.sh [--debian | --python] GROUP...
#   GROUP is build, example, tests, valgrind, lint, wheel, viewers, bench or picture.
#   --debian, --python: only the Debian packages, or only the Python packages.
# Installs what the groups need and the machine lacks: Debian packages in one apt call, named
# before it starts, and the Python packages into .venv. If all is installed it does nothing, in a
# fraction of a second. Without the right or the means to install it prints one line (what is
# missing and what to type) and fails. It changes nothing else on the machine.
set -euo pipefail
cd "$(dirname "$0")/.."

# The one list: group | Debian package | a shell test for what may replace the package | purpose.
# An empty test: nothing replaces it.
packages='
build   | gcc                | command -v cc gcc              | C compiler
build   | libc6-dev          | test -e /usr/include/stdlib.h  | C library headers
build   | cmake              | at_least cmake 3 21            | configures the build
build   | ninja-build        | command -v ninja               | runs the build
build   | pkg-config         | command -v pkg-config          | finds the optional libraries
build   | uthash-dev         |                                | hash tables (header only)
build   | zlib1g-dev         |                                | .gz output
build   | libsqlite3-dev     |                                | results in files, database imports
build   | libyajl-dev        |                                | prof import reads traces with it
example | g++                | command -v c++                 | C++ examples
example | libcjson-dev       |                                | reads the model header
example | libopenblas-dev    |                                | matrix products
example | python3            | command -v python3             | fetches the model
example | python3-venv       | python3 -c "import ensurepip"  | private Python packages
example | ca-certificates    | test -e /etc/ssl/certs/ca-certificates.crt | downloads over TLS
example | ocl-icd-libopencl1 | ls /usr/lib/*/libOpenCL.so.1   | opens the drivers of OpenCL
example | pocl-opencl-icd    | ls /etc/OpenCL/vendors/*.icd   | the processor as an OpenCL device
example | opencl-headers     | test -e /usr/include/CL/cl.h   | the model on OpenCL
tests   | ccache             | command -v ccache              | compiles nothing twice
tests   | g++                | command -v c++                 | C++ consumers of the library
tests   | libcmocka-dev      |                                | C tests
tests   | clang              | command -v clang               | second compiler, fuzzing
tests   | libclang-rt-14-dev |                                | sanitizers and libFuzzer of clang
tests   | llvm               | command -v llvm-symbolizer     | names in sanitizer reports
tests   | binutils           | command -v nm                  | looks at symbols
tests   | lld                | command -v ld.lld              | the linker lld
tests   | musl-tools         | command -v musl-gcc            | another C library
tests   | gcc-aarch64-linux-gnu |                             | the other processor
tests   | libc6-dev-arm64-cross |                             | its C library
tests   | qemu-user          | command -v qemu-aarch64        | runs its programs
tests   | python3            | command -v python3             | runs the README snippets
tests   | python3-venv       | python3 -c "import ensurepip"  | private Python packages
tests   | pypy3              | command -v pypy3               | a Python that is not CPython
tests   | valgrind           | command -v valgrind            | massif, a second count of memory
tests   | libbenchmark-dev   |                                | checks the operator profiler
tests   | ocl-icd-opencl-dev | ls /usr/lib/*/libOpenCL.so     | opens OpenCL drivers; for the docs
tests   | pocl-opencl-icd    | ls /etc/OpenCL/vendors/*.icd   | OpenCL on the processor
tests   | libamdhip64-dev    | ls /usr/include/hip/hip_runtime_api.h | HIP 5.2, header and library
tests   | librocm-smi-dev    | ls /usr/include/rocm_smi/rocm_smi.h   | checks hip/api.h
tests   | opencl-headers     | test -e /usr/include/CL/cl.h   | checks declarations in src/opencl
tests   | clpeak             | command -v clpeak              | an OpenCL program without prof
tests   | locales            | test -e /usr/share/i18n/locales/de_DE | a decimal comma
tests   | zsh                | command -v zsh                 | reads its completion script
tests   | fish               | command -v fish                | reads its completion script
tests   | groff-base         | command -v groff               | reads the manual pages
tests   | mandoc             | command -v mandoc              | finds mistakes in them
tests   | heaptrack          | command -v heaptrack           | a tool of prof run
tests   | uftrace            | command -v uftrace             | a tool of prof run
valgrind | valgrind          | command -v valgrind            | memory checks without a rebuild
valgrind | libc6-dbg         |                                | names in what valgrind says
lint    | clang-tidy         | command -v clang-tidy          | looks for faults in the source
lint    | cppcheck           | command -v cppcheck            | the same in another way
lint    | python3-venv       | python3 -c "import ensurepip"  | mypy, ruff and clang-format
wheel   | python3            | command -v python3             | builds the wheel
wheel   | python3-venv       | python3 -c "import ensurepip"  | private Python packages
wheel   | binutils           | command -v objdump             | looks at symbols
viewers | python3            | command -v python3             | runs the viewers tests
viewers | python3-venv       | python3 -c "import ensurepip"  | private Python packages
viewers | ca-certificates    | test -e /etc/ssl/certs/ca-certificates.crt | downloads over TLS
viewers | nodejs             | at_least node 18 0             | runs the viewers engines
viewers | chromium           | has_chromium                   | opens reports
viewers | golang-go          | command -v go                  | go tool pprof reads profiles
bench   | g++                | command -v c++                 | C++ benchmarks
bench   | liblttng-ust-dev   |                                | the rival tracer
bench   | lttng-tools        |                                | the rival tracer: its daemon
bench   | heaptrack          | command -v heaptrack           | the rival of the preload library
bench   | python3            | command -v python3             | a program that allocates
bench   | python3-venv       | python3 -c "import ensurepip"  | private Python packages
bench   | libbenchmark-dev   |                                | checks the operator profiler
bench   | libcjson-dev       |                                | the operators of the example
bench   | libopenblas-dev    |                                | matrix products
bench   | ocl-icd-libopencl1 | ls /usr/lib/*/libOpenCL.so.1   | opens the drivers of OpenCL
bench   | pocl-opencl-icd    | ls /etc/OpenCL/vendors/*.icd   | scopes on streams of a device
bench   | opencl-headers     | test -e /usr/include/CL/cl.h   | the same
picture | chromium-headless-shell | has_chromium              | takes the picture
'
# Python packages by group; all go into .venv. Versions are pinned for what checks prof, and open
# for what prof only uses. The viewers' engines are in tests/viewers/fetch-engines.sh.
python_packages='
viewers | pytest==8.3.4
tests   | pytest==8.3.4 numpy>=1.24 pandas>=2 pyarrow>=12 nvidia-ml-py==13.615.71 remotezip>=0.12
tests   | duckdb>=1 polars>=1
lint    | mypy==1.18.2 ruff==0.14.5 clang-format==14.0.6
wheel   | ziglang==0.17.1 auditwheel==6.8.2
bench   | viztracer==1.1.1;python_version>="3.10"
'

say() { printf 'prof: %s\n' "$*"; }
fail() { printf 'prof: %s\n' "$*" >&2; exit 1; }

# at_least COMMAND MAJOR MINOR: COMMAND --version is that or newer.
at_least() {
  local version
  version=$("$1" --version 2>/dev/null | grep -oE '[0-9]+\.[0-9]+' | head -n 1) || return 1
  [ "${version%%.*}" -gt "$2" ] ||
    { [ "${version%%.*}" -eq "$2" ] && [ "${version#*.}" -ge "$3" ]; }
}

# As tests/viewers/browser.py looks for it.
has_chromium() {
  command -v "${CHROME:-}" >/dev/null || command -v chromium-headless-shell chromium >/dev/null
}

trim() { local word=$*; word=${word#"${word%%[! ]*}"}; printf '%s' "${word%"${word##*[! ]}"}"; }

# Sets `missing` to the packages of the groups that are not installed and that nothing replaces.
# Sets `reasons` to "package (purpose)".
find_missing() {
  missing=() reasons=()
  local installed group package stand_in purpose
  installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' 2>/dev/null | tr ' ' '\n' |
                sed -n 's/^installed://p' | tr '\n' ' ')"
  while IFS='|' read -r group package stand_in purpose; do
    group=$(trim "$group") package=$(trim "$package") stand_in=$(trim "$stand_in")
    [[ " $groups " == *" $group "* && "$installed ${missing[*]-} " != *" $package "* ]] || continue
    if [ -n "$stand_in" ] && (eval "$stand_in") >/dev/null 2>&1 </dev/null; then continue; fi
    missing+=("$package")
    reasons+=("$package ($(trim "$purpose"))")
  done < <(grep '|' <<<"$packages")
}

# May this user become root? Sets as_root to the command that does it.
find_root() {
  as_root=()
  [ "$(id -u)" -eq 0 ] && return
  as_root=(sudo)
  command -v sudo >/dev/null && { sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }; }
}

# apt-get update does not wait for the lock that another apt holds; install does.
update_lists() {
  for _ in $(seq 60); do
    "${as_root[@]}" apt-get update && return
    grep -q 'Could not get lock' build/setup.log || return 1
    sleep 5
  done
}

install_missing() {
  local list="${missing[*]}" command
  command="apt-get update && apt-get install -y --no-install-recommends $list"
  find_root || fail "missing: $list. No right to install; as root type: $command"
  say "installing these Debian packages, which takes a minute or two:"
  printf '        %s\n' "${reasons[@]}"
  mkdir -p build
  if ! { update_lists && "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
           apt-get install -y --no-install-recommends -o DPkg::Lock::Timeout=600 \
           "${missing[@]}"; } >build/setup.log 2>&1 </dev/null; then
    fail "missing: $list. apt-get failed (no network? see build/setup.log);" \
      "when it works, type as root: $command"
  fi
  # What CMake did not find before, it must look for again.
  rm -f build/*/CMakeCache.txt build/*/build.ninja
}

make_venv() {
  [ -x .venv/bin/python ] && .venv/bin/python -m pip --version >/dev/null 2>&1 && return
  mkdir -p build
  say "making .venv with $(python3 --version)"
  rm -rf .venv
  python3 -m venv .venv >build/setup.log 2>&1 ||
    fail "missing: .venv. python3 -m venv failed (see build/setup.log);" \
      "type: apt-get install python3-venv"
}

# .venv/prof-packages.GROUP holds the list that was installed, so that a second run does nothing.
install_python_packages() {
  local group=$1 wanted=$2 stamp=.venv/prof-packages.$1
  if [ -x .venv/bin/python ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then return; fi
  make_venv
  say "installing into .venv: $wanted"
  # shellcheck disable=SC2086 # a list
  tools/again.sh .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
    $wanted >build/setup.log 2>&1 </dev/null ||
    fail "missing: $wanted. pip failed (no network? see build/setup.log);" \
      "when it works again, type: tools/setup.sh $groups"
  # pip would compile the packages' own tests, too: more than half of all. Packages may have files
  # for other Pythons, which do not compile.
  .venv/bin/python -m compileall -q -x '/tests?/' .venv/lib >/dev/null 2>&1 </dev/null || true
  printf '%s\n' "$wanted" >"$stamp"
}

only=
case ${1:-} in
  --debian | --python)
    only=$1
    shift
    ;;
esac
groups=$*
[ -n "$groups" ] || groups="build example tests viewers bench"
for group in $groups; do
  grep -qE "^$group +\|" <<<"$packages" ||
    fail "no group '$group': there are build, example, tests, valgrind, lint, wheel, viewers," \
      "bench and picture"
done

if [ "$only" = --python ]; then
  :
elif command -v dpkg-query >/dev/null; then
  find_missing
  if [ "${#missing[@]}" -gt 0 ]; then
    install_missing
  fi
else
  say "not a Debian system: packages are not looked after; CMake says what it lacks"
fi
[ "$only" != --debian ] || exit 0
for group in $groups; do
  wanted=$(sed -n "s/^$group *| *//p" <<<"$python_packages" | paste -sd ' ')
  [ -z "$wanted" ] || install_python_packages "$group" "$wanted"
done
case " $groups " in
  *" example "*) make_venv ;;
esac
