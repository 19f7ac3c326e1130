# The same as C++20, and C++23 as far as the compilers have it.
. "$(dirname "$0")/../harness.sh"

for cxx in g++ clang++; do
  if ! command -v $cxx >/dev/null; then
    echo "skip: $cxx is missing"
    continue
  fi
  for standard in c++20 c++2b; do
    quietly $cxx -std=$standard -O2 -Wall -Wextra -pedantic -Werror -I"$PREFIX/include" -o app \
      "$EMBED/app.cpp" -L"$LIBDIR" -lprof
    SCOPES="work thrown" run_app env LD_LIBRARY_PATH="$LIBDIR" ./app
  done
done
