# One target per folder, and one test program per folder of tests.

include(GoogleTest)

# The flags of tests beyond mylos::options. Most of the compile time is spent on GoogleTest's macros, no test measures
# its own speed, and sanitizers examine the library. The last -O on the command line takes effect. Tests whose host twins
# compute for long, and tests on several ranks, use mylos_optimized_test_options.
add_library(mylos_test_options INTERFACE)
add_library(mylos_optimized_test_options INTERFACE)
if(MYLOS_ENABLE_SANITIZERS)
  target_compile_options(mylos_test_options INTERFACE -O0 -fno-sanitize=undefined)
  target_link_libraries(mylos_optimized_test_options INTERFACE mylos_test_options)
else()
  target_compile_options(mylos_test_options INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-O0>)
  target_compile_options(mylos_optimized_test_options INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
endif()

# GoogleTest's macros begin with if, and have an else.
foreach(options mylos_test_options mylos_optimized_test_options)
  target_compile_options(${options} INTERFACE -Wno-dangling-else)
endforeach()

# mylos_precompile(<target> <options>): lets a test program with these options, mylos_test_options or
# mylos_optimized_test_options, use the headers that tests/support precompiles. Only in unity builds, which are for short
# compile times. Not for GPUs, as nvcc has no precompiled headers, nor with ccache, which does not cache units that use them.
set(mylos_precompiled_options)
if(CMAKE_UNITY_BUILD AND NOT mylos_gpus AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(mylos_precompiled_options mylos_test_options)
  if(NOT MYLOS_ENABLE_SANITIZERS) # with sanitizers, all tests have the same options
    list(APPEND mylos_precompiled_options mylos_optimized_test_options)
  endif()
endif()
function(mylos_precompile target options)
  if(NOT mylos_precompiled_options)
    return()
  endif()
  if(NOT options IN_LIST mylos_precompiled_options)
    set(options mylos_test_options)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${options}_headers)
  target_link_libraries(${target} PRIVATE Kokkos::kokkos) # the flags must be those of the headers
endfunction()

# Tests make many providers of products in a process, which then share oneDNN's own cache of generated code
# (core/kernels/products/gemm_onednn.cpp).
set(mylos_test_cache ONEDNN_PRIMITIVE_CACHE_CAPACITY=1024)

# mylos_folder(<folder> [UNITS_OF <folder>] SOURCES <files> [PUBLIC <targets>] [PRIVATE <targets>])
#
# Adds the library of a folder, named by its path: data/squad is mylos_data_squad, with the alias mylos::data_squad.
# Sources are listed individually. PUBLIC: targets that its headers need. PRIVATE: targets that only its .cpp files
# need. Without sources it is an interface library.
#
# UNITS_OF: in a unity build, the folder's sources are compiled with those of another folder, which was added before, and
# its own library is an interface library. Fewer units include the headers of Kokkos and the standard library fewer
# times, which takes nvcc nine seconds each. For the same reason units have up to 40 files; CMAKE_UNITY_BUILD_BATCH_SIZE
# counts for tests. Sets mylos_folder_target to the target that compiles the sources.
function(mylos_folder folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "UNITS_OF" "SOURCES;PUBLIC;PRIVATE")
  string(REPLACE "/" "_" name "${folder}")
  set(target mylos_${name})
  if(arg_UNITS_OF AND CMAKE_UNITY_BUILD)
    string(REPLACE "/" "_" target "mylos_${arg_UNITS_OF}")
    list(TRANSFORM arg_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
    target_sources(${target} PRIVATE ${arg_SOURCES})
    # Folders whose sources the same target compiles are not linked with each other.
    get_property(within GLOBAL PROPERTY MYLOS_UNITS_OF_${target})
    list(REMOVE_ITEM arg_PUBLIC mylos::${name} ${within})
    set_property(GLOBAL APPEND PROPERTY MYLOS_UNITS_OF_${target} mylos::${name})
    string(REPLACE "mylos_" "mylos::" alias "${target}")
    list(REMOVE_ITEM arg_PUBLIC ${alias})
    target_link_libraries(${target} PUBLIC ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    add_library(mylos_${name} INTERFACE)
    target_link_libraries(mylos_${name} INTERFACE ${alias})
  elseif(arg_SOURCES)
    add_library(mylos_${name} STATIC ${arg_SOURCES})
    target_link_libraries(mylos_${name} PUBLIC mylos::options ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    set_target_properties(mylos_${name} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON UNITY_BUILD_BATCH_SIZE 40)
    # Commands do not compute, and compile in three quarters of the time. Sanitized code that does not compute takes longer
    # to be optimised than it then saves.
    if(MYLOS_ENABLE_SANITIZERS AND NOT folder MATCHES "^core")
      target_compile_options(mylos_${name} PRIVATE -O0)
    elseif(folder MATCHES "^app" AND NOT mylos_gpus)
      target_compile_options(mylos_${name} PRIVATE "$<$<CONFIG:Release>:-O1>")
    endif()
  else()
    add_library(mylos_${name} INTERFACE)
    target_link_libraries(mylos_${name} INTERFACE mylos::options ${arg_PUBLIC} ${arg_PRIVATE})
  endif()
  add_library(mylos::${name} ALIAS mylos_${name})
  set_target_properties(mylos_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY MYLOS_FOLDERS ${name})
  set(mylos_folder_target ${target} PARENT_SCOPE)
endfunction()

# Seconds after which ctest ends a test. Limits of tests only end what hangs, at twenty times the usual time or more,
# because no test may fail on a slow machine. tests/support/waiting.hpp has half of this for what a test waits for.
set(mylos_test_limit 1200)
if(MYLOS_ENABLE_SANITIZERS)
  set(mylos_test_limit 2400)
endif()
file(WRITE "${PROJECT_BINARY_DIR}/DartConfiguration.tcl" "TimeOut: ${mylos_test_limit}\n") # ctest reads its default here

# mylos_tests(<name> [KOKKOS | WITHOUT_KOKKOS] [OPTIMIZED] SOURCES <files> [LINK <targets>])
#
# Adds the program test_<name>, and each of its tests as a ctest <name>.<Suite>.<Test> with label
# <name>; with sanitizers, four ctests that each run a part of them. KOKKOS: main() initialises Kokkos before the tests and
# finalises it after them. WITHOUT_KOKKOS: neither the tests nor what they link include or link Kokkos, which
# structure.kokkos checks. OPTIMIZED: compiles the tests with optimisation. Does nothing without sources.
function(mylos_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "KOKKOS;WITHOUT_KOKKOS;OPTIMIZED" "" "SOURCES;LINK")
  if(NOT arg_SOURCES)
    return()
  endif()
  set(main mylos_test_main)
  if(arg_KOKKOS)
    set(main mylos_test_main_kokkos)
  endif()
  set(environment ENVIRONMENT ${mylos_test_cache})
  if(name STREQUAL app) # its tests start the program, whose memory some of them measure
    set(environment)
  endif()
  set(options mylos_test_options)
  if(arg_OPTIMIZED)
    set(options mylos_optimized_test_options)
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  if(arg_WITHOUT_KOKKOS)
    set_target_properties(test_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 40) # GoogleTest's headers take longest
  else()
    mylos_precompile(test_${name} ${options})
  endif()
  target_link_libraries(test_${name} PRIVATE ${arg_LINK} ${main} ${options})
  set_target_properties(test_${name} PROPERTIES CXX_EXTENSIONS OFF)
  # Starting a program with sanitizers takes longer than most tests, so a few processes share them.
  if(MYLOS_ENABLE_SANITIZERS)
    foreach(part RANGE 1 4)
      math(EXPR index "${part} - 1")
      add_test(NAME ${name}.${part}_of_4 COMMAND test_${name})
      set_tests_properties(${name}.${part}_of_4 PROPERTIES LABELS ${name} ENVIRONMENT
                           "GTEST_TOTAL_SHARDS=4;GTEST_SHARD_INDEX=${index};${mylos_test_cache}")
    endforeach()
    return()
  endif()
  # Discovered when ctest starts, so that a test program that fails to build does not stop the others.
  gtest_discover_tests(
    test_${name}
    TEST_PREFIX ${name}.
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT ${mylos_test_limit}
    PROPERTIES LABELS ${name} ${environment} SKIP_REGULAR_EXPRESSION "  SKIPPED . [A-Za-z]")
endfunction()

# mylos_mpi_tests(<name> SOURCES <files> [LINK <targets>] [RANKS <numbers>] [ENVIRONMENT <name=value>...]
#                 [ARGUMENTS <words>...])
#
# Adds the program test_<name>, whose main() launches the ranks (tests/support/launch.hpp) and then Kokkos. For each
# number of ranks, 1 to 4 by default, a ctest <name>.<number>_ranks with label <name> runs all its tests with mpirun, or
# those that ARGUMENTS select. It fails if a test fails on any rank. Only the first rank reports passing tests. In a build
# without MPI there is only one rank.
function(mylos_mpi_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LINK;RANKS;ENVIRONMENT;ARGUMENTS")
  if(NOT arg_RANKS)
    set(arg_RANKS 1 2 3 4)
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  mylos_precompile(test_${name} mylos_optimized_test_options)
  target_link_libraries(test_${name} PRIVATE ${arg_LINK} mylos_test_main_ranks mylos_optimized_test_options)
  set_target_properties(test_${name} PROPERTIES CXX_EXTENSIONS OFF)
  foreach(ranks IN LISTS arg_RANKS)
    mylos_mpi_test(${name}.${ranks}_ranks ${name} ${ranks} ENVIRONMENT ${arg_ENVIRONMENT}
                   ARGUMENTS ${arg_ARGUMENTS})
  endforeach()
endfunction()

# mylos_mpi_test(<test> <name> <ranks> [ENVIRONMENT <name=value>...] [ARGUMENTS <words>...])
#
# Adds one ctest that runs test_<name> with ARGUMENTS on this number of ranks. If it hangs, mpirun is asked to end,
# together with all ranks. In a build without MPI, only tests on one rank.
function(mylos_mpi_test test name ranks)
  cmake_parse_arguments(PARSE_ARGV 3 arg "" "" "ENVIRONMENT;ARGUMENTS")
  set(launcher ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS})
  if(NOT MYLOS_ENABLE_MPI)
    if(ranks GREATER 1)
      return()
    endif()
    set(launcher)
  endif()
  math(EXPR limit "${mylos_test_limit} - 30")
  add_test(NAME ${test} COMMAND timeout --kill-after=10 ${limit} ${launcher} $<TARGET_FILE:test_${name}>
                                ${MPIEXEC_POSTFLAGS} ${arg_ARGUMENTS})
  # Open MPI requires these settings to run as root and with more ranks than cores. Ranks are not bound to cores, and give
  # up theirs while they wait, because several tests may run at once. Leaks within MPI are not ours.
  set_tests_properties(
    ${test}
    PROPERTIES LABELS ${name} PROCESSORS ${ranks} ENVIRONMENT
               "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_hwloc_base_binding_policy=none;OMPI_MCA_mpi_yield_when_idle=1;OMP_NUM_THREADS=1;ASAN_OPTIONS=detect_leaks=0;${mylos_test_cache};${arg_ENVIRONMENT}")
endfunction()
