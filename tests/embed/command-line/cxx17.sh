# A C++17 program: run-time names, braced arguments, a device class; a throw closes its scope.
. "$(dirname "$0")/../harness.sh"

for cxx in g++ clang++; do
  if ! command -v $cxx >/dev/null; then
    echo "skip: $cxx is missing"
    continue
  fi
  quietly $cxx -std=c++17 -O2 -Wall -Wextra -Werror -I"$PREFIX/include" -o app "$EMBED/app.cpp" \
    -L"$LIBDIR" -lprof
  SCOPES="work thrown" run_app env LD_LIBRARY_PATH="$LIBDIR" ./app
done
