# What libprof.a brings into other people's programs: only names with prof's prefix.
. "$(dirname "$0")/../harness.sh"

foreign=$(nm --defined-only --extern-only "$LIBDIR/libprof.a" |
  awk 'NF == 3 && $3 !~ /^prof_/ { print $3 }')
[ -z "$foreign" ] || fail "defined without the prefix prof_: $foreign"
