# gcc -flto over the library and its user at once: assembly, thread-local words and the constructor
# outlive it.
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

need gcc
compile gcc -O2 -flto -fPIC -fvisibility=hidden
runs_whole gcc -O2 -flto=auto
claims_by_one_instruction busy
runs_shared gcc -O2 -flto=auto
claims_by_one_instruction libprof.so
