# Threads free what others allocated: no event is lost or wrong, and what is left is what was not
# freed.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 "$HERE/threads.c" -o threads -pthread
recorded out.prof ./threads || fail "the program's status is $?"
look out.prof 1000003
same "kept by threads" "$live_1000003" 32
same "allocs less frees" $((allocs - frees)) "$end_count"
[ "$allocs" -ge $((32 * 20000)) ] || fail "only $allocs allocs"
[ "$end_count" -le $((32 + 8)) ] || fail "$end_count pieces are left, 32 are the program's"
same "wrong or missing" "$wrong" 0
