# Without PROF_OUTPUT nothing is written, and the library says so: one line, where it is the library
# that was to record. With it, it is silent.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 -fno-builtin "$HERE/ends.c" -o ends -pthread
quietly "$CC" -O1 -I"$PREFIX/include" "$HERE/pools.c" -o pools -L"$LIBDIR" -Wl,-rpath,"$LIBDIR" \
  -lprof
unset PROF_OUTPUT
line="prof: PROF_MEMORY: malloc() is recorded, but nothing will be written,"
line+=" unless the program calls prof_dump(): set PROF_OUTPUT=FILE.prof, too"
mkdir empty
cd empty
library=$LIBDIR/libprof_memory.so
PROF_MEMORY=1 LD_PRELOAD=$library ../ends 2>../said || fail "the status is $?"
same "what it says" "$(cat ../said)" "$line"
PROF_MEMORY=1 PROF_LEVEL=1 LD_PRELOAD=$library ../ends 2>../said ||
  fail "with a level: the status is $?"
same "what it says with a level" "$(cat ../said)" "$line"
PROF_MEMORY=1 ../pools 2>../said || fail "the library is not there: the status is $?"
same "what a program of its own says" "$(cat ../said)" ""
for memory in "" 0; do
  PROF_MEMORY=$memory LD_PRELOAD=$library ../ends 2>../said ||
    fail "PROF_MEMORY='$memory': the status is $?"
  same "what it says with PROF_MEMORY='$memory'" "$(cat ../said)" ""
done
[ -z "$(ls)" ] || fail "it leaves $(ls)"
recorded ../out.prof ../ends 2>../said || fail "with PROF_OUTPUT: the status is $?"
same "what it says with PROF_OUTPUT" "$(cat ../said)" ""
