# prof calls another allocator behind the library and records it. If that allocator cannot say what
# a block takes, prof calls it and does not record it.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 -fno-builtin -fPIC -shared -DHAS_SIZE "$HERE/behind.c" -o libknows.so
quietly "$CC" -O1 -fno-builtin -fPIC -shared "$HERE/behind.c" -o libdoes_not.so
quietly "$CC" -O1 -fno-builtin "$HERE/ends.c" -o ends -pthread
export PROF_MEMORY=1
LD_PRELOAD="$LIBDIR/libprof_memory.so $WORK/libknows.so" PROF_OUTPUT=knows.prof ./ends ||
  fail "the status is $?"
look knows.prof 1000003 1000033
same "pieces freed, kept" "$live_1000003 $live_1000033" "0 1"
same "used at the peak: not rounded, as libc does" "$peak_used" "$peak_requested"
same "wrong or missing" "$wrong" 0
LD_PRELOAD="$LIBDIR/libprof_memory.so $WORK/libdoes_not.so" PROF_OUTPUT=does_not.prof ./ends \
  2>said ||
  fail "the status is $?"
grep "has no malloc_usable_size" said >/dev/null || fail "it says '$(cat said)'"
! ./pool does_not.prof 2>/dev/null || fail "it was recorded"
