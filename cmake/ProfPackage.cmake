# How others find prof: the CMake package in the build tree always, the install rules with
# PROF_INSTALL. Everything installed is relocatable: it names no path outside its own prefix.
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/prof)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/profConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/profConfig.cmake
                              INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO)
# Below 1.0 a minor version may break callers.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/profConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
export(TARGETS prof_shared prof_static NAMESPACE prof::
       FILE ${PROJECT_BINARY_DIR}/profTargets.cmake)

if(NOT PROF_INSTALL)
  return()
endif()

# ${pcfiledir} keeps prof.pc right after the prefix is moved.
file(RELATIVE_PATH PROF_PC_TO_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" PROF_PC_TO_PREFIX "${PROF_PC_TO_PREFIX}")
file(RELATIVE_PATH PROF_PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH PROF_PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(PROF_PC_LIBS_PRIVATE "-pthread -Wl,-z,nodelete")
if(ZLIB_FOUND)
  string(APPEND PROF_PC_LIBS_PRIVATE " -lz")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/prof.pc.in ${PROJECT_BINARY_DIR}/prof.pc @ONLY)

install(TARGETS prof_shared prof_static EXPORT prof
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT prof FILE profTargets.cmake NAMESPACE prof:: DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/profConfig.cmake ${PROJECT_BINARY_DIR}/profConfigVersion.cmake
        DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/prof.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${prof_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/prof)
install(TARGETS prof_opencl prof_cuda prof_hip prof_itt prof_torch LIBRARY
        DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET prof_memory)
  install(TARGETS prof_memory LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET prof_command)
  install(TARGETS prof_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

# Pages for man(1) and completion for shells, which the command itself writes.
if(NOT TARGET prof_command OR PROF_SANITIZE OR CMAKE_CROSSCOMPILING)
  return()
endif()
set(prof_words_dir ${PROJECT_BINARY_DIR}/words)
file(MAKE_DIRECTORY ${prof_words_dir})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tools/prof/commands.h)
file(READ ${PROJECT_SOURCE_DIR}/tools/prof/commands.h prof_command_names)
string(REGEX MATCHALL "\n  X\\([a-z]+" prof_command_names "${prof_command_names}")
set(prof_pages "")
foreach(found IN ITEMS "" ${prof_command_names})
  string(REGEX REPLACE "^\n  X." "" name "${found}")
  string(REGEX REPLACE "^-$" "" suffix "-${name}")
  set(page ${prof_words_dir}/prof${suffix}.1)
  add_custom_command(OUTPUT ${page} COMMAND prof_command help --man ${name} > ${page}
                     DEPENDS prof_command VERBATIM)
  list(APPEND prof_pages ${page})
endforeach()
set(prof_completions "")
foreach(shell IN ITEMS bash zsh fish)
  set(script ${prof_words_dir}/prof.${shell})
  add_custom_command(OUTPUT ${script} COMMAND prof_command completion ${shell} > ${script}
                     DEPENDS prof_command VERBATIM)
  list(APPEND prof_completions ${script})
endforeach()
add_custom_target(prof_words ALL DEPENDS ${prof_pages} ${prof_completions})
add_dependencies(prof_product prof_words)
install(FILES ${prof_pages} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${prof_words_dir}/prof.bash RENAME prof
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${prof_words_dir}/prof.zsh RENAME _prof
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${prof_words_dir}/prof.fish DESTINATION
        ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
