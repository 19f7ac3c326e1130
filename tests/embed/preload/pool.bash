# Sourced by the scripts of this folder, after the harness: the reader, and how a program is
# recorded.
export LD_LIBRARY_PATH=
quietly "$CC" -O2 -I"$PREFIX/include" -o pool "$HERE/pool.c" -L"$LIBDIR" -Wl,-rpath,"$LIBDIR" -lprof
unset LD_LIBRARY_PATH PROF_MEMORY PROF_MEMORY_MIN PROF_POLICY PROF_CAP_BYTES LD_PRELOAD
ulimit -c 0

# recorded OUTPUT COMMAND...: runs it with the library before it.
recorded() {
  local output=$1
  shift
  LD_PRELOAD=$LIBDIR/libprof_memory.so PROF_MEMORY=1 PROF_OUTPUT=$output "$@"
}

# look CAPTURE [SIZE...]: sets what pool.c prints.
look() { eval "$(./pool "$@" || echo "fail 'pool $*'")"; }

# same WHAT FOUND EXPECTED
same() { [ "$2" = "$3" ] || fail "$1: $2, expected $3"; }
