#!/usr/bin/env bash
# usage: tests/api/compare-objects.sh
#
# Compiles call sites with every compiler that is here (gcc and clang, C and C++). Checks at -O2:
# - With PROF_DISABLE, a function with macros has the same instructions as one without them.
# - What does not type-check is refused, with and without PROF_DISABLE. What does type-check
#   compiles without a warning.
# - A plain C call site adds at most 192 bytes of text (printed).
# Ends with "N passed, N failed"; fails when one failed. Leaves nothing behind.
set -uo pipefail
cd "$(dirname "$0")/../.."

site_bytes_max=192
warnings="-Wall -Wextra -Wshadow -Wpedantic -Wconversion -Werror"
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
passed=0
failed=0

if ! command -v objdump >/dev/null; then
  echo "skip: objdump is missing (apt-get install binutils)"
  exit 77
fi

verdict() { # verdict STATUS TEXT
  if [ "$1" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "failed: $2"
  fi
}

# The instructions of an object's text sections, without addresses and names.
instructions() {
  objdump -dr --no-show-raw-insn --section=.text --section=.text.unlikely --section=.text.startup \
    "$1" |
    sed -e '1,/^Disassembly/d' -e 's/^ *[0-9a-f]*:\t*//'
}

text_bytes() { # all sections of code of an object
  objdump -h "$1" |
    awk '$2 ~ /^\.text/ { sum += strtonum("0x" $3) } END { print sum + 0 }' 2>/dev/null ||
    size -A "$1" | awk '$1 ~ /^\.text/ { sum += $2 } END { print sum + 0 }'
}

# Code that stands twice: with the macros of prof, and, where BY_HAND is set, with macros that are
# only the code.
cat >"$folder/body.h" <<'C'
#ifdef BY_HAND
#define BASE(dev, name, cat, args, ...) do { __VA_ARGS__; } while (0)
#define GPU(dev, stream, name, cat, args, ...) do { __VA_ARGS__; } while (0)

#define BLOCK(name) ((void)0)
#define FUNCTION() ((void)0)
#define MARK(name, cat, args) ((void)0)
#define COUNT(name, value) ((void)0)

#else
#define PROF_DISABLE
#include <prof/profiler.h>
#define BASE WITH_BASE_PROFILER
#define GPU WITH_GPU_PROFILER
#define BLOCK PROF_SCOPE
#define FUNCTION PROF_FUNCTION
#define MARK PROF_INSTANT
#define COUNT PROF_COUNTER
#endif
C
cat >"$folder/same.c" <<'C'
#include "body.h"
extern int work(int), more(int);
extern const char *name_of(int);
int plain(int n);
int plain(int n) {
  BASE(PROF_HOST, "plain", "c", PROF_NO_ARGS, { n = work(n); });
  return n;
}
int with_arguments(int n);
int with_arguments(int n) {
  FUNCTION();
  BASE(PROF_HOST, name_of(n), name_of(n + 1), PROF_ARGS("n", n, "more", more(n)),
       { n = work(n) + more(n); });
  GPU(PROF_HOST, n, "gpu", "c", PROF_FMT("%d", more(n)), { n += work(n); });
  MARK(name_of(n), "c", PROF_ARGS("n", more(n)));
  COUNT("counter", more(n));
  return n;
}
int loops(int n);
int loops(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) {
    BLOCK(name_of(i));
    BASE(PROF_HOST, "loop", "c", PROF_NO_ARGS, {
      if (work(i)) goto out;
      if (more(i)) return sum;
      sum += i;
    });
  }
out:
  return sum * 2;
}
C
cat >"$folder/same.cpp" <<'C'
#include <string>
#include "body.h"
extern int work(int), more(int);
extern std::string name_of(int);
struct Device {
  int device_type() const;
  int device_id() const;
};
int plain(int n) {
  BASE(PROF_HOST, "plain", "c", PROF_NO_ARGS, { n = work(n); });
  return n;
}
int raf(const Device &device, int n) {
  FUNCTION();
  BASE(device, name_of(n), "c", {"Count: " + std::to_string(n)}, { n = work(n) + more(n); });
  GPU(device, nullptr, name_of(n), "c", PROF_ARGS("n", more(n), "s", name_of(n)),
      { n += work(n); });
  MARK(name_of(n), "c", {});
  COUNT("counter", more(n));
  return n;
}
int throws(int n) {
  BLOCK(name_of(n));
  BASE(PROF_HOST, "throws", "c", {}, {
    std::string held = name_of(n);
    if (work(n)) throw n;
    if (more(n)) return static_cast<int>(held.size());
  });
  return n * 2;
}
C

compare() { # compare COMPILER STANDARD SOURCE
  local with="$folder/with.o" without="$folder/without.o"
  $1 "-std=$2" $warnings -O2 -Iinclude -c "$folder/$3" -o "$with" &&
    $1 "-std=$2" -O2 -DBY_HAND -c "$folder/$3" -o "$without" &&
    diff <(instructions "$without") <(instructions "$with") >"$folder/difference"
  verdict $? "$1 $3: not the same instructions:$(echo; head -20 "$folder/difference" 2>/dev/null)"
  [ "$(instructions "$with" | wc -l)" -gt 20 ]
  verdict $? "$1 $3: no instructions were compared"
  ! nm "$with" | grep prof_ >/dev/null
  verdict $? "$1 $3: names of prof in the object:$(echo; nm "$with" | grep prof_)"
}

# One statement a line, in a function with int n and const char *text. The first word says whether
# it compiles.
c_uses='
yes WITH_BASE_PROFILER(PROF_HOST, text, "c", PROF_NO_ARGS, { n++; });
no  WITH_BASE_PROFILER(PROF_HOST, no_such_name, "c", PROF_NO_ARGS, { n++; });
no  WITH_BASE_PROFILER(n, "name", "c", PROF_NO_ARGS, { n++; });
no  WITH_BASE_PROFILER(PROF_HOST, "name", "c", n, { n++; });
no  WITH_BASE_PROFILER(PROF_HOST, "name", 3.5, PROF_NO_ARGS, { n++; });
no  WITH_BASE_PROFILER(PROF_HOST, "name", "c", PROF_NO_ARGS, { n++ });
no  WITH_BASE_PROFILER_LEVEL(3, PROF_HOST, "name", "c", PROF_NO_ARGS, { n++; });
no  WITH_BASE_PROFILER_LEVEL(0, PROF_HOST, "name", "c", PROF_NO_ARGS, { n++; });
no  WITH_GPU_PROFILER(PROF_HOST, PROF_HOST, "name", "c", PROF_NO_ARGS, { n++; });
yes WITH_BASE_PROFILER(PROF_HOST, "name", "c", PROF_FMT("%d %s", n, text), { n++; });
no  WITH_BASE_PROFILER(PROF_HOST, "name", "c", PROF_FMT("%s", n), { n++; });
no  WITH_BASE_PROFILER(PROF_HOST, "name", "c", PROF_FMT("%d %d", n), { n++; });
no  WITH_BASE_PROFILER(PROF_HOST, "name", "c", PROF_ARGS("odd"), { n++; });
no  WITH_BASE_PROFILER(PROF_HOST, "name", "c", PROF_ARGS(n, n), { n++; });
no  WITH_BASE_PROFILER(PROF_HOST, "name", "c", PROF_SHAPES(n), { n++; });
yes PROF_SCOPE(text);
no  PROF_SCOPE(3.5);
no  PROF_GPU_SCOPE(n, 0, "name");
no  PROF_INSTANT(3.5, "c", PROF_NO_ARGS);
yes PROF_COUNTER("counter", n);
no  PROF_COUNTER("counter", text);
no  PROF_COUNTER(3.5, n);
no  PROF_COUNTER("counter", no_such_name);'

check_uses() { # check_uses COMPILER STANDARD SUFFIX
  local expected statement disable
  for disable in "" -DPROF_DISABLE; do
    while read -r expected statement; do
      [ -n "$expected" ] || continue
      cat >"$folder/use$3" <<C
#include <prof/profiler.h>
int use(int n, const char *text);
int use(int n, const char *text) {
  $statement
  (void)text;
  return n;
}
C
      $1 "-std=$2" $warnings $disable -fsyntax-only -Iinclude "$folder/use$3" 2>"$folder/why" &&
        got=yes || got=no
      [ $got = "$expected" ]
      verdict $? \
        "$1 $3 $disable: compiles: $got: $statement$(echo; [ $got = no ] && head -5 "$folder/why")"
    done <<<"$c_uses"
  done
}

measure_site() { # measure_site COMPILER: the text of a second plain call site in a function
  local one two form sites
  for form in 'WITH_BASE_PROFILER(PROF_HOST, "matmul", "operator", PROF_NO_ARGS, { work(); });' \
    '{ PROF_SCOPE("matmul"); work(); }'; do
    for sites in 1 2; do
      {
        echo '#include <prof/profiler.h>'
        echo 'extern void work(void);'
        echo 'void sites(void);'
        echo 'void sites(void) {'
        for _ in $(seq "$sites"); do printf '  %s\n' "$form"; done
        printf '}\n'
      } >"$folder/site.c"
      $1 -std=c11 -O2 -fPIC -Iinclude -c "$folder/site.c" -o "$folder/site$sites.o" ||
        { verdict 1 "$1: a call site does not compile"; return; }
    done
    one=$(text_bytes "$folder/site1.o")
    two=$(text_bytes "$folder/site2.o")
    echo "$1: a plain call site takes $((two - one)) bytes of text" \
      "(bound $site_bytes_max): ${form%%(*}"
    [ $((two - one)) -gt 0 ] && [ $((two - one)) -le $site_bytes_max ]
    verdict $? "$1: a plain call site takes $((two - one)) bytes of text, more than $site_bytes_max"
  done
}

# is_asked ONE COMPILER: in CI one compiler a language refuses what does not type-check, with
# PROF_LONG=1 each does.
is_asked() { [ -n "${PROF_LONG:-}" ] || [ "$1" = "$2" ] || ! command -v "$1" >/dev/null; }

tried=0
for compiler in gcc clang; do
  command -v $compiler >/dev/null || { echo "note: no $compiler here"; continue; }
  tried=$((tried + 1))
  compare $compiler c11 same.c
  if is_asked gcc $compiler; then check_uses $compiler c11 .c; fi
  measure_site $compiler
done
for compiler in g++ clang++; do
  command -v $compiler >/dev/null || { echo "note: no $compiler here"; continue; }
  tried=$((tried + 1))
  compare $compiler c++17 same.cpp
  if is_asked clang++ $compiler; then check_uses $compiler c++17 .cpp; fi
done
if [ $tried -eq 0 ]; then
  echo "skip: neither gcc nor clang is here"
  exit 77
fi
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
