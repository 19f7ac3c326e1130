# PROF_MEMORY_MIN: blocks that take less are in neither the events nor the sums, the larger ones are
# all there, and the pool's name says so.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 -fno-builtin -o least "$HERE/least.c"
PROF_MEMORY_MIN=4096 recorded large.prof ./least || fail "the status is $?"
look large.prof 50000 60000 200003 300007 100 50
same "allocs" "$allocs" 4 # 50000, 60000, 200003, 300007
same "frees" "$frees" 2
same "live of 50000 and 200003" "$live_50000 $live_200003" "1 1"
same "live of the rest" "$live_60000 $live_300007 $live_100 $live_50" "0 0 0 0"
same "bytes at the end" "$end_requested" 250003
same "bytes at the peak" "$peak_requested" $((50000 + 200003 + 300007))
same "what is wrong" "$wrong $before $is_exact" "0 0 1"
"$PREFIX/bin/prof" memory large.prof >said || fail "prof memory: the status is $?"
grep "malloc from 4096 bytes on" said >/dev/null ||
  fail "the pool's name does not say what is missing: $(cat said)"

recorded all.prof ./least || fail "the status is $?"
look all.prof 100 200003
same "small ones without it" "$live_100" 500
PROF_MEMORY_MIN=4k recorded none.prof ./least 2>said || true
grep "PROF_MEMORY_MIN='4k' is not a number from 0 to" said >/dev/null ||
  fail "a bad PROF_MEMORY_MIN: it says '$(cat said)'"
