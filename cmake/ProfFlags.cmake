# prof_flags(TARGET): language level, warnings and sanitizers of everything that prof itself
# builds. Nothing here reaches the programs that link prof.

set(PROF_C_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wundef -Wvla -Wstrict-prototypes
    -Wmissing-prototypes)
set(PROF_CXX_WARNINGS -Wall -Wextra -Wshadow -Wconversion -Wundef -Wvla -Wold-style-cast)

function(prof_flags target)
  set_target_properties(${target} PROPERTIES C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF
                                             CXX_STANDARD 17 CXX_STANDARD_REQUIRED ON
                                             CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:C>:${PROF_C_WARNINGS}>"
                                           "$<$<COMPILE_LANGUAGE:CXX>:${PROF_CXX_WARNINGS}>")
  if(PROF_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(PROF_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${PROF_SANITIZE} -fno-sanitize-recover=all
                                             -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${PROF_SANITIZE})
  endif()
endfunction()
