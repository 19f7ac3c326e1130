# Every public header compiles alone, without a warning, as C11 from gcc and clang.
. "$(dirname "$0")/../harness.sh"

flags="-std=c11 -pedantic -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wundef -Werror"
for cc in gcc clang; do
  if ! command -v $cc >/dev/null; then
    echo "skip: $cc is missing"
    continue
  fi
  for header in "$PREFIX"/include/prof/*.h; do
    case $header in *_cxx.h) continue ;; esac
    printf '#include <prof/%s>\n#include <prof/%s>\nint not_empty(void);\n' \
      "$(basename "$header")" "$(basename "$header")" >alone.c
    for define in "" -DPROF_DISABLE; do
      quietly $cc $flags $define -I"$PREFIX/include" -c -o alone.o alone.c
    done
  done
  quietly $cc $flags -I"$PREFIX/include" -c -o app.o "$EMBED/app.c"
done
