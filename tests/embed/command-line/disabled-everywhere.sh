# All of a program made with PROF_DISABLE, in C and in C++: its scopes are gone, its code runs, and
# what it asks of prof itself still works.
. "$(dirname "$0")/../harness.sh"

for app in app.c app.cpp busy.c; do
  case $app in *.cpp) compiler=("$CXX" -std=c++17) ;; *) compiler=("$CC" -std=c11) ;; esac
  quietly "${compiler[@]}" -O2 -Wall -Wextra -Werror -DPROF_DISABLE -I"$PREFIX/include" -c \
    -o object.o "$EMBED/$app"
  ! nm -u object.o | grep 'prof_i_' || fail "$app made with PROF_DISABLE still has call sites"
  [ $app != busy.c ] || continue # its counts would be wrong, rightly
  quietly "${compiler[0]}" -o app object.o -L"$LIBDIR" -lprof
  rm -f trace.json
  LD_LIBRARY_PATH=$LIBDIR ./app trace.json || fail "$app made with PROF_DISABLE: status $?"
  expect_scopes trace.json
done

# One that only has scopes does not need the library at all.
quietly "$CC" -std=c11 -O2 -DPROF_DISABLE -I"$PREFIX/include" -o app "$EMBED/no-code/app.c"
./app || fail "a program without the library: status $?"
