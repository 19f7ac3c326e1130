# Opened with RTLD_LOCAL, two libraries with the static prof inside have two profilers; names need
# not be hidden.
. "$(dirname "$0")/../harness.sh"
. "$HERE/copies.bash"

part one one.so "${ARCHIVE[@]}"
part two two.so "${ARCHIVE[@]}"
quietly "$CC" -O2 -o program "$HERE/program.c" -ldl
says "start one 0
start two 0
one 10 two 100
stop one 0
one 10 two 1100
stop two 0
dump 0 0" ./program ./one.so local ./two.so
in_trace one.json one 10
in_trace two.json two 1100
