# A program under ThreadSanitizer that loads an installed libprof.so. With the one line that
# docs/how-to/link-prof.md gives, nothing is reported.
. "$(dirname "$0")/../harness.sh"

export PKG_CONFIG_PATH=$LIBDIR/pkgconfig
wrapper=()
setarch "$(uname -m)" -R true 2>/dev/null && wrapper=(setarch "$(uname -m)" -R)
quietly $CC -O1 -g -Wall -Wextra -Werror -fsanitize=thread -o app "$HERE/app.c" \
  $(pkg-config --cflags --libs prof) -lpthread
echo called_from_lib:libprof.so >suppressions
TSAN_OPTIONS=halt_on_error=1:suppressions=suppressions quietly "${wrapper[@]}" env \
  LD_LIBRARY_PATH="$LIBDIR" ./app trace.json
[ "$(wc -c <trace.json)" -gt 1000 ] || fail "it recorded nothing"
