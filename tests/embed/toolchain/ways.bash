# need COMMAND...: or the test is skipped.
need() {
  local command
  for command in "$@"; do command -v "$command" >/dev/null || skip "$command is missing"; done
}

# compile COMPILER FLAG...: the library's and busy.c's objects, in objects/, as anybody might
# compile them who uses no CMake.
compile() {
  rm -rf objects
  mkdir objects
  printf '%s\n' "$SOURCE"/src/*/*.c "$SOURCE"/src/core/*/*.c "$EMBED/busy.c" |
    xargs -P 2 -I{} sh -c \
      '"$@" -c "$0" -o "objects/$(basename "$(dirname "$0")")-$(basename "$0" .c).o"' {} \
      "$@" -std=c11 -I"$SOURCE/include" >"$WORK/log" 2>&1 || fail "$*: $(head -n 20 "$WORK/log")"
  mkdir objects/app
  mv objects/*-busy.o objects/app/
}

# runs_whole COMPILER FLAG...: linked into one program, it records and reads back.
runs_whole() {
  quietly "$@" -o busy objects/*.o objects/app/*.o -pthread
  run_app ./busy
}

# runs_shared COMPILER FLAG...: the same from a shared library, whose thread-local word must be
# where the hot path finds it without a call.
runs_shared() {
  quietly "$@" -shared -o libprof.so objects/*.o -pthread
  ! nm -D libprof.so | grep -w __tls_get_addr >/dev/null ||
    fail "$*: thread-local words are asked for by a call"
  quietly "$@" -o busy objects/app/*.o -L. -lprof -pthread
  run_app env LD_LIBRARY_PATH=. ./busy
}

# claims_by_one_instruction FILE: the machine code that takes room is still the one that no handler
# can come between.
claims_by_one_instruction() {
  [ "$(uname -m)" = x86_64 ] || return 0
  objdump -d --no-show-raw-insn "$1" >code
  grep -E '\sxadd ' code >/dev/null || fail "$1 has no xadd"
}

# lto_of_clang FLAG: one program, and a shared library.
lto_of_clang() {
  need clang ld.lld
  compile clang -O2 "$1" -fPIC -fvisibility=hidden
  runs_whole clang -O2 "$1" -fuse-ld=lld
  claims_by_one_instruction busy
  runs_shared clang -O2 "$1" -fuse-ld=lld
}
