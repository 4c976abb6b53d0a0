# One target for each folder, one test program for each folder of tests.

include(GoogleTest)

# What tests compile with besides mylos::options. GoogleTest's macros are most of what a build compiles, no test measures its
# own speed, and what sanitizers look at is the library. The last -O of a command line is the one that counts.
add_library(mylos_test_options INTERFACE)
if(MYLOS_ENABLE_SANITIZERS)
  target_compile_options(mylos_test_options INTERFACE -O0 -fno-sanitize=undefined)
else()
  target_compile_options(mylos_test_options INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-O1>)
endif()

# mylos_folder(<folder> SOURCES <files> [PUBLIC <targets>] [PRIVATE <targets>])
#
# The library of a folder, named by its path: data/squad is mylos_data_squad, alias mylos::data_squad. Sources are listed one
# by one. PUBLIC: targets that its headers need. PRIVATE: targets that only its .cpp files need.
# Without sources it is an interface library.
function(mylos_folder folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE")
  string(REPLACE "/" "_" name "${folder}")
  if(arg_SOURCES)
    add_library(mylos_${name} STATIC ${arg_SOURCES})
    target_link_libraries(mylos_${name} PUBLIC mylos::options ${arg_PUBLIC} PRIVATE ${arg_PRIVATE})
    set_target_properties(mylos_${name} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  else()
    add_library(mylos_${name} INTERFACE)
    target_link_libraries(mylos_${name} INTERFACE mylos::options ${arg_PUBLIC} ${arg_PRIVATE})
  endif()
  add_library(mylos::${name} ALIAS mylos_${name})
  set_target_properties(mylos_${name} PROPERTIES EXPORT_NAME ${name})
  set_property(GLOBAL APPEND PROPERTY MYLOS_FOLDERS ${name})
endfunction()

# mylos_tests(<name> [KOKKOS] SOURCES <files> [LINK <targets>] [TIMEOUT <seconds>])
#
# The program test_<name> from tests/<name>, each of its tests a ctest named <name>.<Suite>.<Test> with label <name>.
# KOKKOS: main() initialises Kokkos before the tests and finalises it after them.
# TIMEOUT: of each test; 300 s by default. Without sources nothing is made.
function(mylos_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "KOKKOS" "TIMEOUT" "SOURCES;LINK")
  if(NOT arg_SOURCES)
    return()
  endif()
  set(main mylos_test_main)
  if(arg_KOKKOS)
    set(main mylos_test_main_kokkos)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  target_link_libraries(test_${name} PRIVATE ${arg_LINK} ${main} mylos_test_options)
  set_target_properties(test_${name} PROPERTIES CXX_EXTENSIONS OFF)
  # Discovered when ctest starts: a test program that does not build yet does not stop the others.
  gtest_discover_tests(
    test_${name}
    TEST_PREFIX ${name}.
    DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 120
    PROPERTIES LABELS ${name} TIMEOUT ${arg_TIMEOUT} SKIP_REGULAR_EXPRESSION "  SKIPPED . [A-Za-z]")
endfunction()

# mylos_mpi_tests(<name> SOURCES <files> [LINK <targets>] [RANKS <numbers>] [TIMEOUT <seconds>] [ENVIRONMENT <name=value>...]
#                 [ARGUMENTS <words>...])
#
# The program test_<name>, whose main() launches the ranks (tests/support/launch.hpp) and then Kokkos, and for each number
# of ranks, 1 to 4 by default, a ctest named <name>.<number>_ranks with label <name> that runs its tests by mpirun, all
# unless ARGUMENTS filters them. It fails where a test fails on any rank. Only the first rank tells of tests that pass.
# TIMEOUT: 120 s by default; then mpirun is told to end, and with it all ranks. In a build without MPI: one rank.
function(mylos_mpi_tests name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;LINK;RANKS;ENVIRONMENT;ARGUMENTS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  if(NOT arg_RANKS)
    set(arg_RANKS 1 2 3 4)
  endif()
  add_executable(test_${name} ${arg_SOURCES})
  target_link_libraries(test_${name} PRIVATE ${arg_LINK} mylos_test_main_ranks mylos_test_options)
  set_target_properties(test_${name} PROPERTIES CXX_EXTENSIONS OFF)
  foreach(ranks IN LISTS arg_RANKS)
    mylos_mpi_test(${name}.${ranks}_ranks ${name} ${ranks} ${arg_TIMEOUT} ENVIRONMENT ${arg_ENVIRONMENT}
                   ARGUMENTS ${arg_ARGUMENTS})
  endforeach()
endfunction()

# mylos_mpi_test(<test> <name> <ranks> <timeout> [ENVIRONMENT <name=value>...] [ARGUMENTS <words>...])
#
# One ctest that runs test_<name> with ARGUMENTS on so many ranks. In a build without MPI: only on one.
function(mylos_mpi_test test name ranks timeout)
  cmake_parse_arguments(PARSE_ARGV 4 arg "" "" "ENVIRONMENT;ARGUMENTS")
  set(launcher ${MPIEXEC_EXECUTABLE} ${MPIEXEC_NUMPROC_FLAG} ${ranks} ${MPIEXEC_PREFLAGS})
  if(NOT MYLOS_ENABLE_MPI)
    if(ranks GREATER 1)
      return()
    endif()
    set(launcher)
  endif()
  math(EXPR last "${timeout} + 30")
  add_test(NAME ${test} COMMAND timeout --kill-after=10 ${timeout} ${launcher} $<TARGET_FILE:test_${name}>
                                ${MPIEXEC_POSTFLAGS} ${arg_ARGUMENTS})
  # As root, and with more ranks than cores, Open MPI wants to be told; several tests at a time may not be tied to the
  # same core. What MPI itself leaks is not ours.
  set_tests_properties(
    ${test}
    PROPERTIES LABELS ${name} TIMEOUT ${last} PROCESSORS ${ranks} ENVIRONMENT
               "OMPI_ALLOW_RUN_AS_ROOT=1;OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1;OMPI_MCA_rmaps_base_oversubscribe=1;OMPI_MCA_hwloc_base_binding_policy=none;OMP_NUM_THREADS=1;ASAN_OPTIONS=detect_leaks=0;${arg_ENVIRONMENT}")
endfunction()
