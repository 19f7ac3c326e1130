# Two libraries with the static prof inside each, linked into one program: the first that the
# dynamic linker finds serves both, and writes one trace.
. "$(dirname "$0")/../harness.sh"
. "$HERE/copies.bash"

part one libone.so "${ARCHIVE[@]}"
part two libtwo.so "${ARCHIVE[@]}"
for order in "-lone -ltwo" "-ltwo -lone"; do
  quietly "$CC" -O2 -DLINKED -o program "$HERE/program.c" -L. $order -Wl,-rpath,"$PWD"
  says "one 0 two 0" ./program
  says "start one 0
start two 0
one 110 two 110
stop one 0
one 110 two 110
stop two -4
dump 0 0" ./program start
  in_trace one.json one 10 two 100
  says "one 110 two 110" env PROF_LEVEL=1 PROF_OUTPUT=both.json ./program 2>said
  [ ! -s said ] || fail "with the environment it says: $(cat said)"
  in_trace both.json one 10 two 100
  [ "$(ls both*)" = both.json ] || fail "more than one trace: $(ls both*)"
done
