# More events of memory than are copied at exit: the capture itself becomes the .prof that was asked
# for.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

cat >large.c <<'END'
#include <stdlib.h>
int main(void) {
  for (int i = 0; i < 1200000; i++) free(malloc(100)); /* 73 MiB */
  return malloc(1000003) == NULL;
}
END
quietly "$CC" -O1 -fno-builtin large.c -o large
mkdir there
(cd there && recorded out.prof ../large 2>../said) || fail "the status is $?"
same "what stands there" "$(ls there)" out.prof
same "what it says" "$(cat said)" ""
look there/out.prof 1000003
same "pieces of the program" "$live_1000003" 1
[ "$allocs" -gt 1200000 ] || fail "of 1200001 allocs, $allocs are there"
same "wrong or missing" "$wrong" 0
rm -r there
