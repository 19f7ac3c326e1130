. "$EMBED/toolchain/ways.bash"
command -v musl-gcc >/dev/null || skip "musl-gcc is missing"
[ "$(uname -m)" = x86_64 ] || skip "musl's folder is known for x86-64 only"
# uthash.h and the kernel's headers are not musl's: they come after its own.
MUSL=(musl-gcc -std=c11 -O2 -fvisibility=hidden -I"$SOURCE/include"
  -idirafter /usr/include -idirafter /usr/include/x86_64-linux-gnu)
