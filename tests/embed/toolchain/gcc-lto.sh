# gcc -flto over the library and its user at once: assembly, thread-local words and the constructor
# outlive it.
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

need gcc
[ "${PROF_LONG:-0}" = 1 ] && level=-O2 || level=-O1
compile gcc $level -flto -fPIC -fvisibility=hidden
runs_whole gcc $level -flto=auto
claims_by_one_instruction busy
runs_shared gcc $level -flto=auto
claims_by_one_instruction libprof.so
