#!/usr/bin/env bash
# check-wheel.sh: builds the wheel for this machine and checks what it needs of the C library. Then
# installs the wheel into a clean environment of the oldest and the newest Python, two at a time.
# There the package's tests run, those of the command and the library in the newest alone. Then
# tests `pip install ./bindings/python` with one of them, which uses the machine's own compiler.
# Builds and checks the wheel for the other processor.
# PROF_LONG=1: every Python, and all tests with what was compiled here.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset PYTHONPATH PROF_LIBRARY
passed=0 failed=0 skipped=0
checkout_before=$(git -C "$source" status --porcelain --ignored 2>/dev/null | grep bindings)

expect() { # TEXT COMMAND...
  local text=$1
  shift
  if "$@" >"$scratch/log" 2>&1; then
    echo "ok: $text"
    passed=$((passed + 1))
  else
    echo "failed: $text"
    cat "$scratch/log"
    failed=$((failed + 1))
  fi
}

# The newest symbol that a library asks of glibc is not newer than the wheel's tag says.
asks_no_more_than() {
  local newest
  newest=$(objdump -T "$1" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -V | tail -n 1)
  echo "newest: $newest"
  [ -n "$newest" ] && [ "$(printf '%s\n%s\n' "$newest" "$2" | sort -V | tail -n 1)" = "$2" ]
}

needs_only_the_c_library() {
  local others
  others=$(objdump -p "$1" | awk '$1 == "NEEDED" { print $2 }' |
    grep -vE '^(libc\.so\.6|libm\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux.*)$')
  echo "needs: $others"
  [ -z "$others" ]
}

has_no_debugging_paths() { ! grep -qaF "$source" "$1" && ! grep -qaF "$scratch" "$1"; }

auditwheel_agrees() {
  "$source/.venv/bin/auditwheel" show "$1" | tr '\n' ' ' >"$scratch/show"
  cat "$scratch/show"
  grep -qF "is consistent with the following platform tag: \"manylinux_2_17_$2\"" "$scratch/show"
}

# tests_in VERSION PYTHON TEST...: these test files, with what is installed there.
tests_in() {
  local version=$1 python=$2 test log
  shift 2
  for test in "$@"; do
    log=$("$here/run.sh" "$test" "$version" "$python")
    if [[ $(tail -n 1 <<<"$log") =~ \
      ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped ]]; then
      passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2])) \
        skipped=$((skipped + BASH_REMATCH[3]))
    else
      failed=$((failed + 1))
    fi
    sed '$d' <<<"$log"
  done
}

# What the command and the library do, whichever Python starts them. make test runs these tests, on
# a command of the same sources. Here the newest Python runs those that show that the wheel's
# command opens SQLite, yajl and zlib, and works with files and the network. PROF_LONG=1: each
# Python runs all.
of_c_here='export_databases import_files merge view'
of_c='compare export_databases import import_arrows import_damaged_database import_devices
  import_events import_files import_missing_rows import_order import_processes import_rocpd
  import_rpd import_rules import_told import_words merge merged minilm_program table view'

# python_tests VERSION: the test files for this Python, one a line.
python_tests() {
  local test name left=$of_c
  [ "$1" != "$newest" ] || left=$(tr ' ' '\n' <<<"$of_c" | grep -vxF "${of_c_here// /$'\n'}")
  [ "${PROF_LONG:-0}" != 1 ] || left=
  for test in "$here"/test_*.py; do
    name=${test##*/test_}
    grep -qw "${name%.py}" <<<"$left" || echo "$test"
  done
}

# in_python VERSION PYTHON: all checks of the wheel under one Python; the counts go to a file.
in_python() {
  local version=$1 python=$2 place
  passed=0 failed=0 skipped=0 # of this process alone
  scratch=$scratch/${version// /-} # as expect's log is
  mkdir "$scratch"
  place=$scratch/venv
  if ! "$python" -m venv "$place" >"$scratch/log" 2>&1; then
    echo "skip: Python $version makes no environment: $(tail -n 1 "$scratch/log")"
    skipped=1
  else
    expect "Python $version installs the wheel, without network and compiler" env PATH=/nowhere \
      "$place/bin/python" -m pip install --quiet --disable-pip-version-check --no-index "$wheel"
    # What skips without numpy says so.
    "$place/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check \
      --only-binary=:all: numpy >"$scratch/log" 2>&1 ||
      echo "no numpy for Python $version: $(tail -n 1 "$scratch/log")"
    # The tests write no bytecode, and would compile it in each process.
    env -u PYTHONDONTWRITEBYTECODE "$place/bin/python" -c 'import numpy' >/dev/null 2>&1
    expect "Python $version uses the wheel's library" uses_its_own_library "$place/bin/python"
    expect "Python $version records malloc() by the wheel's library" records_malloc \
      "$place/bin/python"
    expect "Python $version uses the wheel's command" uses_its_own_command "$place/bin/python"
    expect "Python $version has the command beside it" has_the_command "$place/bin"
    mapfile -t files < <(python_tests "$version")
    tests_in "$version" "$place/bin/python" "${files[@]}"
  fi
  echo "$passed $failed $skipped" >"$scratch/counts"
}

# is_in_the_wheel PYTHON MODULE PATH: the file is beside the package that MODULE's PATH names.
is_in_the_wheel() {
  (cd / && "$1" - <<PYTHON
import os, prof
from $2
print($3)
raise SystemExit(os.path.dirname($3) != os.path.join(os.path.dirname(prof.__file__), "lib"))
PYTHON
  )
}
uses_its_own_command() { is_in_the_wheel "$1" "prof._import import command" "command()"; }
# It finds its library, and the Python that has the package.
has_the_command() {
  cmp "$1/prof" "$("$1/python" -c 'from prof._import import command; print(command())')" &&
    [ "$("$1/prof" --version)" = "$("$1/python" -m prof --version)" ] &&
    echo 'import prof; print("recorded", prof.__version__)' >"$scratch/script.py" &&
    "$1/prof" run -q "$scratch/script.py" | grep '^recorded '
}
uses_its_own_library() { is_in_the_wheel "$1" "prof._library import C" "C.path"; }
records_malloc() {
  (cd / && "$1" -m prof run --profile-memory --sort memory - \
    <<<'import ctypes; ctypes.CDLL(None).malloc(1 << 26)' 2>&1 |
    tee /dev/stderr | grep '64\.[0-9]* MiB' >/dev/null)
}

own=$(uname -m)
for machine in x86_64 aarch64; do
  expect "the wheel for $machine is built" "$source/tools/wheel.sh" "$machine"
  wheel=$(echo "$source"/build/wheel/libprof-*-py3-none-manylinux_2_17_"$machine".whl)
  mkdir "$scratch/$machine"
  expect "the wheel for $machine is a zip" python3 -m zipfile -e "$wheel" "$scratch/$machine"
  library=$(echo "$scratch/$machine/prof/lib/"libprof.so.?)
  expect "it asks for glibc 2.17 at most" asks_no_more_than "$library" 2.17
  expect "it needs nothing but the C library" needs_only_the_c_library "$library"
  expect "no path of this machine stands in it" has_no_debugging_paths "$library"
  command=$scratch/$machine/prof/lib/prof # which prof.import_trace() runs
  expect "the command asks for glibc 2.17 at most" asks_no_more_than "$command" 2.17
  expect "no path of this machine stands in the command" has_no_debugging_paths "$command"
  # Which python -m prof run --profile-memory preloads.
  memory=$scratch/$machine/prof/lib/libprof_memory.so
  expect "the library for malloc() asks for glibc 2.17 at most" asks_no_more_than "$memory" 2.17
  expect "no path of this machine stands in the library for malloc()" has_no_debugging_paths \
    "$memory"
  expect "auditwheel says manylinux_2_17_$machine" auditwheel_agrees "$wheel" "$machine"
done

wheel=$(echo "$source"/build/wheel/libprof-*-py3-none-manylinux_2_17_"$own".whl)
pythons=ends tests=("$here"/test_scopes.py "$here"/test_scopes_process.py)
[ "${PROF_LONG:-0}" != 1 ] || pythons=all tests=("$here"/test_*.py)
mapfile -t pythons < <(PROF_TEST_PYTHONS=$pythons "$here/pythons.sh")
newest=$(printf '%s\n' "${pythons[@]%%|*}" | grep -v '^pypy' | sort -V | tail -n 1)
for line in "${pythons[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n; done
  in_python "${line%%|*}" "${line#*|}" >"$scratch/${line%%|*}.said" 2>&1 &
  [[ $line == pypy* ]] || last=${line%%|*} last_python=${line#*|}
done
wait
for line in "${pythons[@]}"; do
  version=${line%%|*}
  cat "$scratch/$version.said"
  read -r p f s <"$scratch/${version// /-}/counts" || p=0 f=1 s=0 # it died
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done

# Where tools/cache.bash has found ccache, its objects serve beside-torch.sh, too.
compiler="${CMAKE_C_COMPILER_LAUNCHER:-} ${CC:-cc}"
place=$scratch/venv-source
"${last_python:-python3}" -m venv "$place"
expect "pip install ./bindings/python, Python ${last:-3}" env CC="$compiler" \
  "$source/tools/again.sh" "$place/bin/python" -m pip install --quiet \
  --disable-pip-version-check "$source/bindings/python"
expect "it uses what it has compiled" uses_its_own_library "$place/bin/python"
tests_in "$last" "$place/bin/python" "${tests[@]}"
expect "the checkout is as it was" test "$checkout_before" = \
  "$(git -C "$source" status --porcelain --ignored 2>/dev/null | grep bindings)"

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
