# Opened with RTLD_GLOBAL, the first library's prof serves those that are opened after it.
. "$(dirname "$0")/../harness.sh"
. "$HERE/copies.bash"

part one one.so "${ARCHIVE[@]}"
part two two.so "${ARCHIVE[@]}"
quietly "$CC" -O2 -o program "$HERE/program.c" -ldl
one_profiler="start one 0
start two 0
one 110 two 110
stop one 0
one 110 two 110
stop two -4
dump 0 0"
says "$one_profiler" ./program ./one.so global ./two.so
in_trace two.json one 10 two 100

# So does a libprof.so that the program loads; and the static prof of a program that shows its
# names, even to a part that brings libprof.so.
part two two-shared.so -L"$LIBDIR" -lprof -Wl,-rpath,"$LIBDIR"
quietly "$CC" -O2 -o loads-shared "$HERE/program.c" -ldl -Wl,--no-as-needed -L"$LIBDIR" -lprof \
  -Wl,-rpath,"$LIBDIR"
says "$one_profiler" ./loads-shared ./one.so local ./two.so
quietly "$CC" -O2 -rdynamic -o shows-static "$HERE/program.c" -ldl -Wl,--whole-archive \
  "$LIBDIR/libprof.a" -Wl,--no-whole-archive \
  -pthread "${needed[@]}"
for second in ./two.so ./two-shared.so; do
  says "$one_profiler" ./shows-static ./one.so local $second
  in_trace one.json one 10 two 100
  PROF_LEVEL=1 PROF_OUTPUT=both.json ./shows-static ./one.so local $second >out 2>said ||
    fail "shows-static with $second: status $?"
  [ ! -s said ] || fail "with the environment it says: $(cat said)"
  [ "$(ls both* | wc -l)" = 1 ] || fail "more than one trace: $(ls both*)"
done
