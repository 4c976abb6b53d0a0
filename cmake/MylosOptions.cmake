# The user's options, and mylos::options: the flags of all our targets (no directory-wide flags).

option(MYLOS_ENABLE_OPENMP "Threads on the host through Kokkos' OpenMP backend; OFF is Serial" ON)
option(MYLOS_ENABLE_MPI "Several ranks through MPI" ON)
set(mylos_onednn ON)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(mylos_onednn OFF) # the versions known here have no fast products for Arm's CPUs, as OpenBLAS has
endif()
option(MYLOS_ENABLE_ONEDNN "oneDNN as a provider of matrix products on the host" ${mylos_onednn})
option(MYLOS_ENABLE_CUDA "GPUs through Kokkos' CUDA backend, which is then what computes" OFF)
set(MYLOS_CUDA_ARCHITECTURE 80 CACHE STRING "Compute capability that CUDA code is built for: 70 (V100), 80 (A100), 90 (H100, H200)")
option(MYLOS_ENABLE_HIP "GPUs of AMD through Kokkos' HIP backend, which is then what computes" OFF)
set(MYLOS_HIP_ARCHITECTURE 90a CACHE STRING "Architecture that HIP code is built for: 90a (MI250X), 942 (MI300A, MI300X)")
if(MYLOS_ENABLE_CUDA AND MYLOS_ENABLE_HIP)
  message(FATAL_ERROR "A build computes on GPUs of one vendor: set -DMYLOS_ENABLE_CUDA=OFF or -DMYLOS_ENABLE_HIP=OFF.")
endif()
set(mylos_gpus OFF)
if(MYLOS_ENABLE_CUDA OR MYLOS_ENABLE_HIP)
  set(mylos_gpus ON)
endif()
set(mylos_nccl OFF)
if(mylos_gpus AND MYLOS_ENABLE_MPI)
  set(mylos_nccl ON)
endif()
option(MYLOS_ENABLE_NCCL "Device arrays of several ranks through NCCL (RCCL with HIP) as well, which is looked for when it is used" ${mylos_nccl})
set(mylos_cudnn OFF)
if(MYLOS_ENABLE_CUDA AND MYLOS_CUDA_ARCHITECTURE GREATER_EQUAL 80)
  set(mylos_cudnn ON)
endif()
option(MYLOS_ENABLE_CUDNN "Attention by cuDNN as well, which is looked for when it is used (convolutions need no option)" ${mylos_cudnn})
option(MYLOS_ENABLE_NATIVE "Compile for the CPU of this machine (-march=native); the program may not run on another" OFF)
option(MYLOS_ENABLE_TESTS "The tests" ON)
option(MYLOS_ENABLE_BENCH "The benchmarks" ON)
option(MYLOS_ENABLE_SANITIZERS "AddressSanitizer and UndefinedBehaviorSanitizer in all our targets" OFF)
option(MYLOS_ENABLE_FUZZ "libFuzzer targets (clang)" OFF)
option(MYLOS_ENABLE_DEVICE_KERNELS "The kernels of devices on the CPU, in teams of its threads: to test them, for they are slow there" OFF)

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

# ccache, if installed, speeds up repeated builds of the same source.
find_program(MYLOS_CCACHE ccache)
if(MYLOS_ENABLE_CUDA)
  # Kokkos' launch compiler chooses between nvcc and the host compiler, and expects a command line that begins with the
  # latter.
  unset(CMAKE_CXX_COMPILER_LAUNCHER)
  unset(CMAKE_CXX_COMPILER_LAUNCHER CACHE)
elseif(MYLOS_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${MYLOS_CCACHE}")
endif()

add_library(mylos_options INTERFACE)
add_library(mylos::options ALIAS mylos_options)
# Requirements of programs that link the installed libraries are public; the flags for our own files are not.
target_compile_features(mylos_options INTERFACE cxx_std_20)
target_include_directories(mylos_options INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
                                                   "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/mylos>")

# mylos_own_flags(<flags>...): for our own files only
function(mylos_own_flags)
  foreach(flag IN LISTS ARGN)
    target_compile_options(mylos_options INTERFACE "$<BUILD_INTERFACE:${flag}>")
  endforeach()
endfunction()

# errno and floating-point traps are not used, and they prevent loops with exp, sqrt or a comparison from being
# vectorised.
mylos_own_flags(-Wall -Wextra -fno-math-errno -fno-trapping-math)
if(MYLOS_ENABLE_CUDA)
  # fmt 9 assumes that nvcc lacks constexpr, and then calls non-constexpr functions from constexpr ones.
  target_compile_definitions(mylos_options INTERFACE FMT_USE_CONSTEXPR=1)
  # Kokkos links the CUDA driver library, whose functions core/kernels/cuda/driver.cpp provides. With --as-needed, an
  # unused library need not be present at start.
  target_link_options(mylos_options INTERFACE LINKER:--as-needed)
elseif(MYLOS_ENABLE_HIP)
  # HIP's functions, unlike CUDA's, are declared [[nodiscard]], and clang warns of functions that only a host build calls.
  mylos_own_flags(-Wno-unused-result -Wno-unneeded-internal-declaration)
  target_link_options(mylos_options INTERFACE LINKER:--as-needed) # Kokkos names ROCm's library below that of HIP, too
else()
  mylos_own_flags(-Wpedantic) # the code that nvcc passes to the host compiler is not ISO C++
endif()
if(MYLOS_ENABLE_DEVICE_KERNELS)
  target_compile_definitions(mylos_options INTERFACE MYLOS_DEVICE_KERNELS)
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # By default, GCC collects garbage whenever its heap, from 128 MiB on, has doubled. That takes a tenth of the time to compile
  # a unit of many files.
  mylos_own_flags(--param=ggc-min-heapsize=1048576)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  mylos_own_flags(-Wno-restrict) # GCC 12 warns of std::string's own code
endif()
# Messages name files relative to the root of the tree, wherever it was built.
mylos_own_flags("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")

if(MYLOS_ENABLE_NATIVE)
  # The CPU's name in the command line makes a build tree recompile on another CPU, instead of failing with an illegal
  # instruction.
  cmake_host_system_information(RESULT mylos_cpu QUERY PROCESSOR_DESCRIPTION)
  execute_process(COMMAND grep -m1 -E "^(flags|Features)" /proc/cpuinfo OUTPUT_VARIABLE mylos_cpu_flags ERROR_QUIET)
  string(MD5 mylos_cpu "${mylos_cpu}${mylos_cpu_flags}")
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    mylos_own_flags(-mcpu=native) # there, -march does not choose what code is scheduled for
  else()
    mylos_own_flags(-march=native)
  endif()
  target_compile_definitions(mylos_options INTERFACE "$<BUILD_INTERFACE:MYLOS_CPU_${mylos_cpu}>")
endif()

if(MYLOS_ENABLE_SANITIZERS)
  # AddressSanitizer reports null pointers and objects that are too small where they are used. Without these checks of
  # UndefinedBehaviorSanitizer and that of dynamic types, compiling takes a tenth less time. The library's assertions find
  # an index beyond the elements of a vector that has room for more.
  set(mylos_sanitizers -fsanitize=address,undefined -fno-sanitize=null,object-size,vptr -fno-sanitize-recover=all
                       -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS)
elseif(MYLOS_ENABLE_FUZZ)
  set(mylos_sanitizers -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
endif()
target_compile_options(mylos_options INTERFACE ${mylos_sanitizers})
target_link_options(mylos_options INTERFACE ${mylos_sanitizers})

function(mylos_print_summary)
  message(STATUS "Mylos ${PROJECT_VERSION}, ${CMAKE_BUILD_TYPE}, ${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}")
  message(STATUS "  Kokkos            ${Kokkos_VERSION} (${Kokkos_DEVICES}) in ${Kokkos_DIR}")
  message(STATUS "  Kokkos Kernels    in ${KokkosKernels_DIR}")
  foreach(name OPENMP CUDA CUDNN HIP MPI NCCL ONEDNN NATIVE TESTS BENCH SANITIZERS FUZZ)
    string(SUBSTRING "MYLOS_ENABLE_${name}                      " 0 24 label)
    message(STATUS "  ${label}  ${MYLOS_ENABLE_${name}}")
  endforeach()
endfunction()
