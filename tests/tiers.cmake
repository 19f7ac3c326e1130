# When a test runs. make test runs the tier "quick", make test-ci "ci" as well, make test-long
# "long" as well. A test that no line here matches is quick.
# A line is TIER:REGEX, and the first that matches wins.

# The tiers:
#   make test:       What a change is tested with again and again. Each test takes seconds.
#   make test-ci:    What takes longer, or differs from a quick test only in the compiler or linker.
#   make test-long:  Toolchains and ways to build that behave like those of the other tiers.
set(prof_tiers
    "long:^embed\\.command-line\\.whole$" # bare-cc, with a main() beside it
    "long:^embed\\.musl\\.opened$" # musl.linked, opened at run time
    "ci:^embed\\.toolchain\\.gcc-lto$"
    "long:^embed\\.toolchain\\."
    "ci:^embed\\.two-subprojects\\.(both-add|older-first)$"
    "long:^embed\\.two-subprojects\\."
    "ci:^embed\\.(musl\\.linked|old-header\\.newer|zlib\\.run-time)$"
    "ci:^embed\\.(subdirectory\\.shared|subdirectory\\.static)$"
    "ci:^embed\\.command-line\\.(bare-cc|cxx20|disabled-everywhere)$"
    "ci:^embed\\.headers\\.strict-cxx$"
    "ci:^(fault|steps|stress)\\." # 45 s of processor time to build, and minutes to run
    "ci:^failing\\.(every_call|every_call_and_all_after_it|memory_calls)$"
    "ci:^embed\\.preload\\.(account|massif)$"
    "ci:^api\\.(compare-objects|get_large|op_file)$"
    "ci:^conformance\\.opencl_layer$" # conformance.opencl; device.opencl_layer has the layer
    "ci:^embed\\.no-code\\.large$"
    "ci:^device\\.(cuda-headers|hip-headers|cupti-walk|gpu-checks|clpeak)$"
    "ci:^hostile\\.(flips|truncation|memory|text)$"
    "ci:^minilm\\.(compilers|opbench|opencl|cuda|hip)$"
    "ci:^python\\.(safety_recordings|minilm_program|export_databases|import_files)$"
    "ci:^run\\.(shown|python_ends|streams|processes|progress|helpers|rocprof)$"
    "ci:^run\\.((python_)?words|own_outputs)$"
    "ci:^run\\.(calls|merged_formats)$")

# Under a sanitizer these take ten times as long, and what they show does not depend on it.
# They count scopes, kill processes and read damaged files by the hundred thousand. Calls that fail
# and the example's own parts are tested without one.
if(PROF_SANITIZE)
  list(PREPEND prof_tiers "long:^stress\\.(exact|kill|cap)$" "long:^hostile\\.(flips|truncation)$"
                          "long:^(failing|minilm)\\.")
endif()

# ThreadSanitizer checks threads. Of the tests that read a capture or write an export, only those of
# the first line have any; hostile bytes are read by one thread. The tests of the last two lines
# have one thread, too.
if(PROF_SANITIZE MATCHES "thread")
  list(PREPEND prof_tiers "quick:^unit\\.(live_reading|reader_unpack_(file|threads))$"
       "long:^unit\\.(reader|live|analysis|report|export|op)_"
       "long:^unit\\.(command|sink|base_(path|text|units))$"
       "long:^hostile\\." "long:^api\\.(bad_input|limits|get_large|interleaved)$"
       "long:^(clock\\.(jumps|sources|wall)|unit\\.(record_site|format_packed))$"
       "long:^api\\.(life|op_file)$")
endif()

# What takes longest, in seconds on a machine of two processors. ctest begins with it, so that no
# processor is idle at a group's end. A test that no line matches takes a few seconds at most.
set(prof_costs
    "90:^fault\\.(signal|fork)_step$"
    "70:^(device\\.(gpu-checks|cuda-headers|cupti-walk)|embed\\.musl\\.linked)$"
    "60:^(stress\\.(deaths|exact)|failing\\.every_call|embed\\.command-line\\.bare-cc)$"
    "60:^embed\\.(subdirectory\\.(shared|static)|toolchain\\.gcc-lto|old-header\\.newer)$"
    "40:^(hostile\\.flips|steps\\.hostile|run\\.(streams|python_ends|processes))$"
    "40:^(fault\\.(single|ledger)_step|python\\.(run|run_torch|safety)|conformance\\.opencl_layer)$"
    "30:^(stress\\.cap|clock\\.(sources|jumps)|device\\.hip-headers)$"
    "30:^(python\\.(import|interpreters)|minilm\\.opencl|docs\\.snippets)$"
    "25:^run\\.shown$"
    "25:^(embed\\.(preload\\.|headers\\.strict-cxx|command-line\\.)|python\\.(command|functions)$)"
    "20:^(unit\\.(export_chrome|buffer_blocks)|failing\\.|stress\\.|hostile\\.)"
    "20:^(python\\.(minilm_program|export_databases|torch|import_files)|run\\.merged_formats)$"
    "20:^api\\.(op_file|compare-objects)$"
    "15:^(unit\\.reader_(crosswise|damage)|conformance\\.opencl|minilm\\.minilm$)"
    "15:^run\\.(packed|pack_kept|filters|filtered_parts|faults|told|sums|messages)$"
    "15:^(fault|embed|python)\\.")

# prof_match(LINES NAME DEFAULT RESULT): sets RESULT to what stands before the first of LINES, each
# WORD:REGEX, that NAME matches. LINES is the name of the list.
function(prof_match lines name default result)
  set(${result} ${default} PARENT_SCOPE)
  foreach(line IN LISTS ${lines})
    string(REGEX MATCH "^([a-z0-9]+):(.*)$" unused "${line}")
    set(word ${CMAKE_MATCH_1})
    if("${name}" MATCHES "${CMAKE_MATCH_2}")
      set(${result} ${word} PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
