# -Bsymbolic-functions ties a library's calls to its own prof. But the level that its call sites
# read is the first library's. Such a copy refuses to start, names the one that is in force, and
# leaves that one alone.
. "$(dirname "$0")/../harness.sh"
. "$HERE/copies.bash"

part one libone.so "${ARCHIVE[@]}" -Wl,-Bsymbolic-functions
part two libtwo.so "${ARCHIVE[@]}" -Wl,-Bsymbolic-functions
quietly "$CC" -O2 -DLINKED -o program "$HERE/program.c" -L. -lone -ltwo -Wl,-rpath,"$PWD"
says "start one 0
start two -14: another copy of prof, in '$PWD/libone.so', receives the scopes of this one...
one 10 two 0
stop one 0
one 10 two 0
stop two -4
dump 0 -4" ./program start
in_trace one.json one 10
