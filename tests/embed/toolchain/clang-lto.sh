# clang -flto, and -flto=thin, with lld.
. "$(dirname "$0")/../harness.sh"
. "$HERE/ways.bash"

need clang ld.lld
for lto in -flto -flto=thin; do
  compile clang -O2 $lto -fPIC -fvisibility=hidden
  runs_whole clang -O2 $lto -fuse-ld=lld
  claims_by_one_instruction busy
  runs_shared clang -O2 $lto -fuse-ld=lld
done
