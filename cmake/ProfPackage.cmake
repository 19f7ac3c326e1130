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
