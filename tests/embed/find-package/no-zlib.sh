# A program that links the shared library needs no zlib to build.
. "$(dirname "$0")/../harness.sh"

mkdir project
cat >project/CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.21)
project(consumer LANGUAGES C)
find_package(prof 0.1 CONFIG REQUIRED)
add_executable(app ${EMBED_DIR}/app.c)
target_link_libraries(app PRIVATE prof::prof)
CMAKE
configure_and_build project -DCMAKE_PREFIX_PATH="$PREFIX" -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON
run_app build/app
