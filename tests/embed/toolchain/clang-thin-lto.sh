# clang -flto=thin over the library and its user, with lld.
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

lto_of_clang -flto=thin
