# What constructors allocate, the program's and a library's, is recorded. What prof allocates while
# it records that is not.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 -fPIC -shared "$HERE/early.c" -o libearly.so -pthread
quietly "$CC" -O1 -Wno-unused-result "$HERE/before_main.c" -o before_main -L. -learly \
  -Wl,-rpath,"$WORK" -pthread
recorded out.prof ./before_main || fail "the program's status is $?"
look out.prof 1000003 1000013 1000033 1000037 1000039 1000081
same "a constructor's in a library" "$live_1000003" 1
same "main()'s" "$live_1000037" 1
same "the threads'" "$live_1000039" 3
same "a constructor's in the program, freed by its destructor" "$live_1000033" 0
# .preinit_array comes before libc is set up: told or not, as the C library is. Beside the
# program's, two pieces of glibc's: the main thread's keys, and the last thread's own.
[ "$end_count" -le $((5 + live_1000013 + live_1000081 + 2)) ] ||
  fail "$end_count pieces are live at the end: prof's own are among them"
same "wrong or missing" "$wrong" 0
