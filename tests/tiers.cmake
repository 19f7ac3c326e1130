# When a test runs. make test runs the tier "quick", make test-ci "ci" as well, make test-long "long" as
# well. A test that no line here matches is quick. A line is TIER:REGEX, and the first that matches wins.

# make test: what a change is tested with again and again. Each test takes seconds.
# make test-ci: what takes longer, or differs from a quick one only in the compiler or the linker.
# make test-long: toolchains and ways to build that behave like those of the other tiers.
set(prof_tiers
    "long:^embed\\.command-line\\.whole$" # bare-cc, with a main() beside it
    "long:^embed\\.musl\\.opened$" # musl.linked, opened at run time
    "ci:^embed\\.toolchain\\.gcc-lto$"
    "long:^embed\\.toolchain\\."
    "ci:^embed\\.two-subprojects\\.(both-add|older-first)$"
    "long:^embed\\.two-subprojects\\."
    "ci:^embed\\.(musl\\.linked|old-header\\.newer|subdirectory\\.shared|subdirectory\\.static|zlib\\.run-time)$"
    "ci:^embed\\.command-line\\.(cxx20|disabled-everywhere)$"
    "ci:^embed\\.preload\\.(account|massif)$"
    "ci:^api\\.(compare-objects|get_large)$"
    "ci:^device\\.(cuda-headers|hip-headers|cupti-walk|gpu-checks|clpeak)$"
    "ci:^hostile\\.(flips|truncation)$"
    "ci:^minilm\\.(compilers|opbench)$")

# Under a sanitizer these take ten times as long, and what they show does not depend on it: they count
# scopes, kill processes and read damaged files by the hundred thousand. Calls that fail and the
# example's own parts are tested without one.
if(PROF_SANITIZE)
  list(PREPEND prof_tiers "long:^stress\\.(exact|kill|cap)$" "long:^hostile\\.(flips|truncation)$"
                          "long:^(failing|minilm)\\.")
endif()

# ThreadSanitizer checks threads. Of the tests that read a capture or write an export, only
# unit.trace_live has any; hostile bytes are read by one thread.
if(PROF_SANITIZE MATCHES "thread")
  list(PREPEND prof_tiers "quick:^unit\\.trace_live$" "long:^unit\\.(trace|export|op)_" "long:^hostile\\."
                          "long:^api\\.(bad_input|get_large|interleaved)$")
endif()

# prof_tier(NAME TIER): sets TIER to the tier of the test NAME.
function(prof_tier name result)
  set(${result} quick PARENT_SCOPE)
  foreach(line IN LISTS prof_tiers)
    string(REGEX MATCH "^([a-z]+):(.*)$" unused "${line}")
    set(tier ${CMAKE_MATCH_1})
    if("${name}" MATCHES "${CMAKE_MATCH_2}")
      set(${result} ${tier} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
