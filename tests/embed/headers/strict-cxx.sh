# Every public header compiles alone, without a warning, as C++17 and C++20 from gcc and clang.
. "$(dirname "$0")/../harness.sh"

flags="-pedantic -Wall -Wextra -Wshadow -Wconversion -Wold-style-cast -Wundef -Werror"
for cc in g++ clang++; do
  if ! command -v $cc >/dev/null; then
    echo "skip: $cc is missing"
    continue
  fi
  for header in "$PREFIX"/include/prof/*.h; do
    printf '#include <prof/%s>\n#include <prof/%s>\nint not_empty(void);\n' \
      "$(basename "$header")" "$(basename "$header")" >alone.cpp
    for define in -std=c++17 -std=c++20 "-std=c++17 -DPROF_DISABLE" "-std=c++20 -DPROF_DISABLE"; do
      quietly $cc $flags $define -I"$PREFIX/include" -c -o alone.o alone.cpp
    done
  done
  for standard in c++17 c++20; do
    quietly $cc $flags -std=$standard -I"$PREFIX/include" -c -o app.o "$EMBED/app.cpp"
  done
done
