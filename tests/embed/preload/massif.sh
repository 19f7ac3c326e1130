# The bytes asked for at the peak are those that valgrind's massif counts.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

command -v valgrind >/dev/null || skip "valgrind is missing"
quietly "$CXX" -std=c++17 -O1 -fno-builtin "$HERE/peak.cpp" -o peak
for seed in 1 2 3; do
  quietly valgrind --tool=massif --peak-inaccuracy=0 --heap-admin=0 --massif-out-file=massif.$seed \
    ./peak $seed
  massif=$(awk -F= '/^mem_heap_B=/ { heap = $2 } /^heap_tree=peak/ { print heap }' massif.$seed)
  recorded $seed.prof ./peak $seed || fail "the program's status is $?"
  look $seed.prof
  same "bytes asked for at the peak, seed $seed" "$peak_requested" "$massif"
  same "wrong or missing" "$wrong" 0
done
