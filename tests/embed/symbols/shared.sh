# What libprof.so shows and needs: names with prof's prefix, its SONAME, no library but libc.
. "$(dirname "$0")/../harness.sh"

library=$LIBDIR/libprof.so
major=$(sed -n 's/^#define PROF_VERSION_MAJOR //p' "$SOURCE/include/prof/version.h")
foreign=$(nm -D --defined-only "$library" | awk '$2 != "A" && $3 !~ /^prof_/ { print $3 }')
[ -z "$foreign" ] || fail "exported without the prefix prof_: $foreign"
[ "$(nm -D --defined-only "$library" | grep -c ' T prof_')" -gt 10 ] ||
  fail "hardly anything is exported"
readelf -d "$library" | grep "SONAME.*\[libprof\.so\.$major\]" >/dev/null ||
  fail "SONAME is not libprof.so.$major"
needed=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
  grep -vE '^(libc\.so\.6|libpthread\.so\.0|libdl\.so\.2|ld-linux.*)$' || true)
[ -z "$needed" ] || fail "libprof.so needs $needed"
! readelf -d "$library" | grep SYMBOLIC >/dev/null ||
  fail "linked with -Bsymbolic: a copy relocation would read level 0 for ever"

# Static thread-local storage is scarce (glibc has some 1600 bytes for all libraries that are
# opened): a copy of prof takes no more than this.
thread_local=$(readelf -lW "$library" | awk '$1 == "TLS" { print $6 }')
[ $((thread_local)) -le 128 ] ||
  fail "it takes $((thread_local)) bytes of static thread-local storage"
! nm -D "$library" | grep -w __tls_get_addr >/dev/null ||
  fail "a thread-local word is asked for by a call, which a signal handler must not make"

# A name that is bound at its first call goes through the dynamic linker. That needs more stack than
# a signal handler may have.
readelf -d "$library" | grep BIND_NOW >/dev/null || fail "it is not bound at load"

# Each page that the loader writes to costs every process a page fault. Behind the read-only part it
# is one. Not where .data begins within a page, as ld.lld links it.
data=$(readelf -SW "$library" | sed -n 's/.* \.data  *PROGBITS  *\([0-9a-f]*\) .*/\1/p')
[ -n "$data" ] || fail "readelf shows no .data"
case $data in
*000)
  pages=$(readelf -rW "$library" | awk -v data="$data" \
    '/_RELATIVE/ && ($1 "") >= (data "") { print substr($1, 1, length($1) - 3) }' | sort -u | wc -l)
  [ "$pages" -eq 1 ] || fail "the loader relocates $pages pages from .data on: PROF_I_BEHIND_DATA"
  ;;
esac
