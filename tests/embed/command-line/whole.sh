# One compiler call over the sources of the library and the program, as docs/how-to/link-prof.md
# shows it. Strict C11, one include folder.
. "$(dirname "$0")/../harness.sh"

cd "$SOURCE"
for way in "-std=c11 $EMBED/busy.c" "-std=gnu17 $EMBED/app.c"; do
  quietly "$CC" -Iinclude src/*/*.c src/core/*/*.c $way -o "$WORK/app" -pthread
  (cd "$WORK" && run_app ./app)
done
