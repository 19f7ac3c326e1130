# Every public header compiles alone, without a warning, as C++17 from gcc and clang.
. "$(dirname "$0")/../harness.sh"

flags="-std=c++17 -pedantic -Wall -Wextra -Wshadow -Wconversion -Wold-style-cast -Wundef -Werror"
for cc in g++ clang++; do
  if ! command -v $cc >/dev/null; then
    echo "skip: $cc is missing"
    continue
  fi
  for header in "$PREFIX"/include/prof/*.h; do
    printf '#include <prof/%s>\n#include <prof/%s>\nint not_empty(void);\n' "$(basename "$header")" "$(basename "$header")" >alone.cpp
    for define in "" -DPROF_DISABLE; do
      quietly $cc $flags $define -I"$PREFIX/include" -c -o alone.o alone.cpp
    done
  done
  quietly $cc $flags -I"$PREFIX/include" -c -o app.o "$EMBED/app.cpp"
done
