# The same with prof's names hidden in each library: two profilers that know nothing of each other,
# each with its trace.
. "$(dirname "$0")/../harness.sh"
. "$HERE/copies.bash"

two_profilers='start one 0
start two 0
one 10 two 100
stop one 0
one 10 two 1100
stop two 0
dump 0 0'

# own_traces OPTION: made with that, the two stay apart.
own_traces() {
  part one libone.so "${ARCHIVE[@]}" "$1"
  part two libtwo.so "${ARCHIVE[@]}" "$1"
  quietly "$CC" -O2 -DLINKED -o program "$HERE/program.c" -L. -lone -ltwo -Wl,-rpath,"$PWD"
  says "$two_profilers" ./program start
  in_trace one.json one 10
  in_trace two.json two 1100
  says "one 10 two 100" env PROF_LEVEL=1 PROF_OUTPUT=both.json ./program
  [ "$(ls both*.json | wc -l)" = 2 ] || fail "not one trace for each: $(ls both*)"
}

own_traces -Wl,--exclude-libs,ALL
own_traces -Wl,-Bsymbolic
echo '{ global: one_*; two_*; local: *; };' >names
own_traces -Wl,--version-script=names
