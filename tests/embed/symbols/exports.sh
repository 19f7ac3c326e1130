# The exported names are exactly those that the public headers declare with PROF_API: nothing
# forgotten, nothing slipped out.
. "$(dirname "$0")/../harness.sh"

python3 - "$SOURCE"/include/prof/*.h <<'PYTHON' | sort -u >declared
import re, sys

for path in sys.argv[1:]:
    text = open(path, encoding="utf-8").read()
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.S)                     # comments
    text = re.sub(r"^#define(.*\\\n)*.*$", " ", text, flags=re.M)          # macros
    for declaration in re.findall(r"\bPROF_API\b([^;{]*)", text):
        declaration = re.sub(r"__attribute__.*", "", declaration, flags=re.S)
        print(re.search(r"\bprof_\w+(?=\s*(\(|$))", declaration).group())
PYTHON
nm -D --defined-only "$LIBDIR/libprof.so" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
  sort -u >exported
diff declared exported >difference ||
  fail "declared (<) and exported (>) differ: $(grep '^[<>]' difference)"
