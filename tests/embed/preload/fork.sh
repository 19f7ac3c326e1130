# A forked child has a capture of its own, begins with what its parent had, and is not blocked by
# what the parent's threads were at.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 -fno-builtin "$HERE/fork.c" -o fork -pthread
mkdir calm busy
recorded calm/out.prof ./fork CALM || fail "calm: the status is $?"
look calm/out.prof 1000003 1000033 1000037 1000039
same "of the parent" "$live_1000003 $live_1000033 $live_1000037 $live_1000039" "1 1 0 1"
same "wrong or missing of the parent" "$wrong" 0
child=$(ls calm/out.*.prof)
look "$child" 1000037 1000039
same "of the child" "$live_1000037 $live_1000039" "1 0"
[ "$before" -ge $((1000003 + 1000033)) ] && [ "$before" -lt $((1000003 + 1000033 + 10000)) ] ||
  fail "the child began with $before bytes"
[ "$peak_used" -ge $((1000003 + 5000037)) ] &&
  [ "$peak_used" -lt $((1000003 + 5000037 + 10000)) ] || fail "the child's peak is $peak_used"
[ "$end_used" -ge $((1000003 + 1000037)) ] && [ "$end_used" -lt $((1000003 + 1000037 + 10000)) ] ||
  fail "the child ends with $end_used"

status=0
PROF_CAP_BYTES=$((16 << 20)) recorded busy/out.prof timeout "${PROF_TEST_HANG_SECONDS:-300}" \
  ./fork BUSY ||
  status=$?
same "busy: the status" "$status" 0
