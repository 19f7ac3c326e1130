# Every name of malloc's family, at random, against the account that the program keeps itself:
# counts, peaks and what is left are equal.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CC" -O1 -fno-builtin -w -o account "$HERE/account.c"
recorded account.prof ./account >said || fail "the program's status is $?"
eval "$(cat said)"
look account.prof
same "allocs" "$allocs" "$own_allocs"
same "frees" "$frees" "$own_frees"
same "used at the peak" "$peak_used" "$own_peak_used"
same "asked for at the peak" "$peak_requested" "$own_peak_asked"
same "used at the end" "$end_used" "$own_used"
same "asked for at the end" "$end_requested" "$own_asked"
same "wrong or missing" "$wrong" 0
same "is exact" "$is_exact" 1

# The same in a ring too small for it: what the pool counts itself is right.
PROF_POLICY=ring PROF_CAP_BYTES=1048576 recorded ring.prof ./account >said ||
  fail "the program's status with a ring is $?"
eval "$(cat said)"
look ring.prof
same "used at the peak, in a ring" "$peak_used" "$own_peak_used"
same "used at the end, in a ring" "$end_used" "$own_used"

# At exit a trace, as with PROF_LEVEL, and nothing beside it.
mkdir json
(cd json && recorded trace.json ../account >said) || fail "the program's status with a trace is $?"
[ "$(ls json | tr '\n' ' ')" = "said trace.json " ] || fail "it leaves $(ls json)"
python3 - json/trace.json <<'PYTHON' || fail "the trace has no memory"
import json, sys
events = json.load(open(sys.argv[1], encoding="utf-8"))["traceEvents"]
counters = [event for event in events if event["ph"] == "C"]
sys.exit(not any(event.get("cat") == "memory" and "malloc" in event["name"] for event in counters))
PYTHON
