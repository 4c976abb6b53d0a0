# mylos_fuzz_target(<name> SOURCE <file.cpp> LINK <targets>)
#
# Adds a fuzz target. <file.cpp> defines
#     extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size)
# which passes the bytes to one reader, catches std::runtime_error and std::invalid_argument, with which a reader
# rejects input, and returns 0. Anything else is a finding: a crash, a sanitizer's report, or another exception.
#
# In the fuzz preset (MYLOS_ENABLE_FUZZ, clang) the target is the libFuzzer program fuzz_<name>, and `scripts/fuzz` runs
# each of them for a while. In a build with sanitizers, the same source is linked with mylos_fuzz_replay, and the ctest
# fuzz.<name> runs it on every file of tests/fuzz/corpus/<name>/. That directory must contain at least one file; it
# holds seeds and earlier findings.
function(mylos_fuzz_target name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "SOURCE" "LINK")
  add_executable(fuzz_${name} ${arg_SOURCE})
  target_link_libraries(fuzz_${name} PRIVATE ${arg_LINK} mylos::options)
  set_target_properties(fuzz_${name} PROPERTIES CXX_EXTENSIONS OFF)
  set_property(GLOBAL APPEND PROPERTY MYLOS_FUZZ_TARGETS ${name})
  if(MYLOS_ENABLE_FUZZ)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  else()
    target_link_libraries(fuzz_${name} PRIVATE mylos_fuzz_replay)
    add_test(NAME fuzz.${name} COMMAND fuzz_${name} "${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name}")
    set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz)
  endif()
endfunction()

# To be called after the last target. The build target fuzz_targets builds all of them, and the file
# <build>/fuzz_targets lists them.
function(mylos_list_fuzz_targets)
  get_property(names GLOBAL PROPERTY MYLOS_FUZZ_TARGETS)
  list(JOIN names "\n" lines)
  file(WRITE "${PROJECT_BINARY_DIR}/fuzz_targets" "${lines}\n")
  list(TRANSFORM names PREPEND fuzz_)
  add_custom_target(fuzz_targets DEPENDS ${names})
endfunction()
