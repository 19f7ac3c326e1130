# A project of C++ alone, which has no C compiler set up, finds and links both libraries.
. "$(dirname "$0")/../harness.sh"

mkdir project
cat >project/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES CXX)
find_package(prof 0.1 CONFIG REQUIRED)
foreach(kind IN ITEMS shared static)
  add_executable(app-${kind} ${EMBED_DIR}/app.cpp)
  target_compile_features(app-${kind} PRIVATE cxx_std_17)
  target_link_libraries(app-${kind} PRIVATE prof::${kind})
endforeach()
CMAKE
configure_and_build project -DCMAKE_PREFIX_PATH="$PREFIX"
for kind in shared static; do SCOPES="work thrown" run_app "build/app-$kind"; done
