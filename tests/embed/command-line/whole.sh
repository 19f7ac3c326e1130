# The library's sources beside the program's in one compiler call, as README has it; strict C11, one include folder.
. "$(dirname "$0")/../harness.sh"

cd "$SOURCE"
for way in "-std=c11 $EMBED/busy.c" "-std=gnu17 $EMBED/app.c"; do
  quietly "$CC" -Iinclude src/*/*.c src/core/*/*.c $way -o "$WORK/app" -pthread
  (cd "$WORK" && run_app ./app)
done
