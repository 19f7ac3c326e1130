# operator new in its forms, and what a constructor that throws gives back.
. "$(dirname "$0")/../harness.sh"
. "$HERE/pool.bash"

quietly "$CXX" -std=c++17 -O0 "$HERE/new.cpp" -o new
recorded out.prof ./new || fail "the program's status is $?"
look out.prof 1000003 1000033 1280896 1000037 1000038 1000039 1000081 1000099
same "new char[]" "$live_1000003" 1
same "operator new" "$live_1000033" 1
same "new of an aligned type" "$live_1280896" 1
same "new (nothrow)" "$live_1000037" 1
same "a std::unique_ptr that is gone" "$live_1000039" 0
same "what was deleted, or thrown out of" "$live_1000081" 0
same "wrong or missing" "$wrong" 0
