# musl's dlopen() refuses prof, by a text that names initial-exec, and the program goes on:
# libprof.so itself, a plug-in that links it, and one that prof is inside of. When the program links
# libprof.so, a plug-in that does too is opened and recorded.
. "$(dirname "$0")/../harness.sh"
. "$HERE/musl.bash"

cat >host.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  void *const library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library) {
    printf("refused: %s\n", dlerror());
    return 3;
  }
  return ((int (*)(int))dlsym(library, "plugin_work"))(41) == 42 ? 0 : 1;
}
C
plugin=$EMBED/plug-in/plugin.c
compile "${MUSL[@]}" -fPIC
quietly musl-gcc -shared objects/*.o -o libprof.so -pthread
quietly "${MUSL[@]}" -fPIC -shared "$plugin" -o links.so -L. -lprof -Wl,-rpath,"$PWD"
quietly "${MUSL[@]}" -fPIC -shared "$plugin" objects/*.o -o inside.so -pthread
quietly musl-gcc -O2 host.c -o host
for library in libprof.so links.so inside.so; do
  status=0
  ./host "./$library" >said 2>&1 || status=$?
  [ $status -eq 3 ] || fail "$library: status $status: $(cat said)"
  grep 'refused: .*initial-exec TLS' said >/dev/null ||
    fail "$library is refused without the reason: $(cat said)"
done
quietly musl-gcc -O2 host.c -o host-links -Wl,--no-as-needed -L. -lprof -Wl,-rpath,"$PWD"
PROF_LEVEL=1 PROF_OUTPUT=trace.json ./host-links ./links.so || fail "host-links: status $?"
expect_scopes trace.json "plugin work"
