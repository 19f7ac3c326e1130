# part NAME FILE LINK-OPTION...: a library that the part NAME is in, made with these options.
part() {
  quietly "$CC" -O2 -fPIC -shared -I"$PREFIX/include" -DPART="$1" -o "$2" "$HERE/part.c" "${@:3}"
}

# Inside a shared library: the static prof, and what that needs.
ARCHIVE=("$LIBDIR/libprof.a" -pthread)
read -ra needed <<<"$(PKG_CONFIG_PATH=$LIBDIR/pkgconfig pkg-config --static --libs-only-l prof |
  sed 's/-lprof//')"
ARCHIVE+=("${needed[@]}")

# says EXPECTED COMMAND...: what it prints is exactly that; "..." stands for any text.
says() {
  local expected=$1 said
  shift
  rm -f ./*.json
  said=$("$@") || fail "$*: status $?"
  # shellcheck disable=SC2053
  [[ $said == ${expected//.../*} ]] || fail "$*: expected
$expected
but it says
$said"
}

# in_trace FILE NAME COUNT...: that many scopes of that name are in the trace, and no others.
in_trace() {
  local file=$1 names=() name
  shift
  while [ $# -gt 0 ]; do
    for ((name = 0; name < $2; name++)); do names+=("$1"); done
    shift 2
  done
  expect_scopes "$file" "${names[@]}"
}
