# The objects of version 1: compiled with include-1, the headers as they were.
quietly "$CC" -O2 -I"$HERE/include-1" -c -o old.o "$HERE/old.c"
quietly "$CXX" -std=c++17 -O2 -I"$HERE/include-1" -c -o old-cxx.o "$HERE/old.cpp"
! nm -u old.o old-cxx.o | grep 'prof_i_.*_[2-9]' || fail "these are no objects of version 1"

# records COMMAND...: exact, and what it writes at level 2 is all there.
records() {
  rm -f trace.json
  "$@" trace.json || fail "$*: status $?"
  python3 - <<'PYTHON'
import json, sys
events = [e for e in json.load(open("trace.json"))["traceEvents"] if e["ph"] == "X"]
found = sorted(e["name"] for e in events)
wanted = sorted(["old", "old values", "old text", "old level 2", "old name 0", "old format",
                 "old at", "old C++"])
if found != wanted:
    sys.exit(f"failed: {found}, expected {wanted}")
values = [e["args"] for e in events if e["name"] == "old values"][0]
if values.get("i") != 0 or values.get("half") != 0:
    sys.exit(f"failed: the arguments are {values}")
PYTHON
}
