# A program starts a capture while the environment's runs. The error says which variable began it,
# and how to join. The program's own captures have the usual error.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 -I"$PREFIX/include" "$HERE/starts.c" -o starts -L"$LIBDIR" -Wl,-rpath,"$LIBDIR" \
  -lprof
running="PROF_E_RUNNING: a capture is running at level"
joins="prof_start(level) joins it, prof_stop() ends it"
own="prof_stop() it first, or prof_start(level) to change the level"
rest="after a stop: PROF_OK: 
once more: $running 2; $own
memory alone: $running 0; $own"

same "PROF_MEMORY" "$(PROF_MEMORY=1 PROF_OUTPUT=out.prof ./starts)" \
  "first: $running 0: PROF_MEMORY of the environment began it; $joins
joined: $running 2: PROF_MEMORY of the environment began it; $joins
$rest"
same "PROF_MEMORY and the library" "$(recorded out.prof ./starts)" \
  "first: $running 0: PROF_MEMORY of the environment began it; $joins
joined: $running 2: PROF_MEMORY of the environment began it; $joins
$rest"
same "PROF_LEVEL" "$(PROF_LEVEL=1 PROF_OUTPUT=out.prof ./starts)" \
  "first: $running 1: PROF_LEVEL of the environment began it; $joins
joined: $running 2: PROF_LEVEL of the environment began it; $joins
$rest"
same "neither" "$(./starts)" "first: PROF_OK: 
joined: $running 2; $own
$rest"

# Where PROF_JOIN asks for it, each start of the program joins the environment's capture.
ok="PROF_OK: "
same "PROF_JOIN" "$(PROF_JOIN=1 PROF_LEVEL=1 PROF_OUTPUT=out.prof ./starts)" "first: $ok
joined: $ok
after a stop: $ok
once more: $ok
memory alone: $ok"
same "PROF_JOIN alone" "$(PROF_JOIN=1 ./starts)" "first: $ok
joined: $ok
after a stop: $ok
once more: $ok
memory alone: $ok"
