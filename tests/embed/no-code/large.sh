# A capture that is too large to be copied at exit becomes PROF_OUTPUT itself, where that is a
# .prof: under its name, whole, and nothing beside it.
. "$(dirname "$0")/../harness.sh"

quietly "$CC" -O2 -I"$PREFIX/include" -o large "$HERE/large.c" -L"$LIBDIR" -Wl,-rpath,"$LIBDIR" \
  -lprof
count=4500000 # 68 MiB: with PROF_MEMORY more than 64 are not copied
export PROF_LEVEL=1 PROF_MEMORY=1 PROF_CAP_BYTES=$((1 << 30))

# in_folder NAME COMMAND...: in a new folder, what it says in ../NAME.said
in_folder() {
  local name=$1
  shift
  mkdir "$name"
  (cd "$name" && "$@" 2>"../$name.said") || fail "$name: status $?, $(cat "$name.said")"
}
# has FILE SCOPES: a capture that nobody records into any more, with so many and none lost
has() {
  "$PREFIX/bin/prof" info "$1" >info ||
    fail "$1: prof info's status is $?; there are: $(ls "$(dirname "$1")")"
  grep -w "$2 recorded; no loss" info >/dev/null || fail "$1 has not $2 scopes: $(cat info)"
}
same() { [ "$2" = "$3" ] || fail "$1: '$2', expected '$3'"; }

umask 027
PROF_OUTPUT=out.prof in_folder alone ../large $count
same "what stands there" "$(ls alone)" out.prof
same "the mode, as of a capture: nobody else reads it" "$(stat -c %a alone/out.prof)" 600
same "what it says" "$(cat alone.said)" ""
has alone/out.prof $count

(cd alone && PROF_OUTPUT=out.prof ../large $((count + 7))) # over its own output of before
same "what stands there" "$(ls alone)" out.prof
has alone/out.prof $((count + 7))

PROF_OUTPUT=out.prof in_folder dump ../large $count dump
same "what stands there after a dump by call" "$(ls dump | tr '\n' ' ')" "by-call.prof out.prof "
has dump/by-call.prof $count
has dump/out.prof $((2 * count))

PROF_OUTPUT=out.prof in_folder again ../large $count again
same "what stands there when the program has dumped all" "$(ls again)" by-call.prof
grep 'the program has dumped it' again.said >/dev/null || fail "it says '$(cat again.said)'"

PROF_OUTPUT=out.prof in_folder fork ../large $count fork
same "how many of a parent and its child" "$(ls fork | wc -l)" 2
has fork/out.prof $count
has "$(ls fork/out.*.prof)" $((count + 1))

PROF_OUTPUT=out.prof in_folder bare ../large $count bare
same "what stands there after a child without handlers" "$(ls bare)" out.prof

# Two at once: the first that ends takes the name, and the other has one of its own from the start.
mkdir together
mkfifo hold
(cd together && exec env PROF_OUTPUT=out.prof ../large $count wait <../hold) &
first=$!
exec 3>hold
for _ in $(seq $((50 * ${PROF_TEST_HANG_SECONDS:-300}))); do
  ls together/*.prof >/dev/null 2>&1 && break || sleep 0.02
done
(cd together && PROF_OUTPUT=out.prof ../large $((count + 3)))
exec 3>&-
wait $first || fail "the first of two: status $?"
same "how many of two" "$(ls together | wc -l)" 2
has together/out.prof $count
has "$(ls together/out.*.prof)" $((count + 3))

# Another process records into the output: it stays its own, and ours is where it was, and said.
mkdir held
(cd held && : >out.prof && flock -x out.prof env PROF_OUTPUT=out.prof ../large $count 2>said) ||
  fail "held: status $?"
same "the other's" "$(stat -c %s held/out.prof)" 0
grep "another process records into it; the capture is /[^ ]*/held/out.prof\.[^ ]*-0.prof" \
  held/said >/dev/null ||
  fail "it says '$(cat held/said)'"
has "$(ls held/out.prof.*)" $count

# As JSON it stays a capture, and it is said how to convert it.
PROF_OUTPUT=out.json in_folder json ../large $count
convert='prof dump /[^ ]*/json/out\.json\.[^ ]*-0\.prof -o /[^ ]*/json/out\.json'
grep -E "has (68|69|70) MiB; to convert it: $convert" json.said >/dev/null ||
  fail "it says '$(cat json.said)'"
has "$(ls json/out.json.*)" $count
rm -rf alone dump again fork bare together held json
