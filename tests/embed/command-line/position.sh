# Position-independent or not, from gcc and clang, optimised or not: the program sees the library's
# level. A program that is not position-independent takes a copy of the library's data, and the
# library must then use that copy.
. "$(dirname "$0")/../harness.sh"

for cc in gcc clang; do
  if ! command -v $cc >/dev/null; then
    echo "skip: $cc is missing"
    continue
  fi
  for flags in "-fPIE -pie" "-fno-pie -no-pie" "-O2 -fPIE -pie" "-O2 -fno-pie -no-pie"; do
    quietly $cc $flags -I"$PREFIX/include" -o app "$EMBED/app.c" -L"$LIBDIR" -lprof
    run_app env LD_LIBRARY_PATH="$LIBDIR" ./app
  done
done
