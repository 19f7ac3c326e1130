# The example of docs/how-to/instrument-an-allocator.md, built as a reader would. Its own account is
# prof's, its output can be read, and an allocator that omits a call is detected.
. "$(dirname "$0")/../harness.sh"

unset PROF_MEMORY LD_PRELOAD
main=$SOURCE/examples/allocator/main.c
export PKG_CONFIG_PATH=$LIBDIR/pkgconfig LD_LIBRARY_PATH=$LIBDIR
flags="-std=c11 -Wall -Wextra -Werror $(pkg-config --cflags prof)"
libs="$(pkg-config --libs prof) -pthread"

quietly "$CC" $flags -o allocator "$main" $libs
quietly ./allocator
[ "$(ls *.prof *.txt | tr '\n' ' ')" = "allocator.oom.txt allocator.prof " ] ||
  fail "it leaves $(ls)"
# The page shows the text's first lines as they are.
page=docs/how-to/instrument-an-allocator.md
sed -n '/^out of memory: /,/^```$/p' "$SOURCE/$page" | sed '$d' >shown
[ $(wc -l <shown) -eq 8 ] || fail "$page shows no text of an allocation that failed"
head -n 8 allocator.oom.txt | diff shown - || fail "$page shows another text"
"$PREFIX/bin/prof" memory allocator.prof | tr -s ' ' >report || fail "prof memory: status $?"
for line in "Pool 1: tensors on cpu:0, exact, piece by piece, session 1" \
  " before the start 2.86 MiB were used and 4.00 MiB allocated" \
  "Pool 3: device tensors on cuda:0, exact, piece by piece, session 1" \
  " fragmentation 17.85% 17.43% 34.34%"; do
  grep -Fx "$line" report >/dev/null || fail "the report does not say '$line': $(cat report)"
done

# forgets SAID CALL: without that call the accounts differ, and the program says in what.
forgets() {
  grep -v "^ *$2" "$main" >forgets.c
  [ $(($(wc -l <"$main") - $(wc -l <forgets.c))) -eq 1 ] ||
    fail "$2 stands there more than once, or never"
  quietly "$CC" $flags -Wno-error -w -o forgets forgets.c $libs
  local status=0
  ./forgets forgets.prof >said 2>&1 || status=$?
  [ $status -eq 1 ] || fail "without $2 the status is $status: $(cat said)"
  grep "^allocator: tensors: $1: prof says" said >/dev/null ||
    fail "without $2 it says '$(cat said)'"
}
forgets "frees" "prof_memory_free("
forgets "allocs" "prof_memory_alloc_for("
forgets "reserves" "prof_memory_reserve("
forgets "peak of allocated" "prof_memory_reserve("
forgets "peak of used" "prof_memory_free("
sed 's/\.query = query,//' "$main" >forgets.c
quietly "$CC" $flags -o forgets forgets.c $libs
! ./forgets forgets.prof >said 2>&1 || fail "without the query's baseline the accounts agree"
grep "^allocator: tensors: used before: prof says 0, the allocator 3001344$" said >/dev/null ||
  fail "without the query it says '$(cat said)'"
