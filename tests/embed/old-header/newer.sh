# A newer library is made from today's: other words in a call site, in another order, and names that
# end in _2. version_1.c keeps the old names. Objects of version 1 are linked with it, beside new
# objects. A program that was linked with today's library runs with it.
. "$(dirname "$0")/../harness.sh"
. "$HERE/objects.bash"

mkdir newer
cp -r "$SOURCE/include" "$SOURCE/src" newer/
python3 - newer <<'PYTHON'
import pathlib, re, sys

root = pathlib.Path(sys.argv[1])
scope = root / "include/prof/scope.h"
text = scope.read_text()
def change(pattern, to):
    global text
    text, count = re.subn(pattern, to, text, flags=re.S)
    if count != 1:
        sys.exit(f"failed: {pattern} is {count} times in scope.h: mend this test")
change(r"typedef struct prof_site \{.*?\} prof_site;",
       """typedef struct prof_site {
  uint32_t level;
  uint32_t line;
  uint64_t newer[4];
  const char *function;
  const char *file;
  uint64_t values;
  uint64_t state;
} prof_site;""")
change(r"#define PROF_I_SITE\(level_\) \{[^\n]*\}",
       "#define PROF_I_SITE(level_) "
       "{(level_), __LINE__, {0, 0, 0, 0}, __func__, __FILE__, 0, 0}")
scope.write_text(text)
for path in list(root.glob("include/prof/*.h")) + list(root.glob("src/**/*.[ch]")):
    names = "level|begin|begin_details|begin_values|begin_text|begin_name|end|instant|counter"
    text = re.sub(rf"\b(prof_i_(?:{names}))_1\b", r"\1_2", path.read_text())
    text = re.sub(r"\bprof_scope_begin_at\b", "prof_scope_begin_at_2", text)
    path.write_text(text)
PYTHON
quietly "$CC" -std=c11 -O0 -fvisibility=hidden -fPIC -shared -Wl,-soname,libprof.so.0 \
  -Inewer/include -I"$HERE" -o newer/libprof.so.0 \
  newer/src/*/*.c newer/src/core/*/*.c "$HERE/version_1.c" -pthread
ln -s libprof.so.0 newer/libprof.so
for name in prof_i_level_1 prof_i_level_2 prof_i_begin_1 prof_i_begin_2; do
  nm -D --defined-only newer/libprof.so | grep -w $name >/dev/null ||
    fail "the newer library has no $name"
done

quietly "$CC" -O2 -Inewer/include -c -o program.o "$HERE/program.c"
nm -u program.o | grep -w prof_i_begin_details_2 >/dev/null ||
  fail "the new object is not one of version 2"
quietly "$CXX" -o program program.o old.o old-cxx.o -Lnewer -lprof -Wl,-rpath,"$PWD/newer"
records ./program

quietly "$CC" -O2 -I"$HERE/include-1" -c -o program-old.o "$HERE/program.c"
quietly "$CXX" -o program-old program-old.o old.o old-cxx.o -L"$LIBDIR" -lprof
records env LD_LIBRARY_PATH="$LIBDIR" ./program-old
records env LD_LIBRARY_PATH="$PWD/newer" ./program-old
