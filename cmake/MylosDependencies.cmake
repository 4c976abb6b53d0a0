# Finds all libraries. If one is missing, the configuration ends with its name and how to install it.

# mylos_require(<variable> <library> <debian package> <spack package>)
function(mylos_require found library debian spack)
  if(NOT ${found})
    message(FATAL_ERROR "${library} is not found. On Debian `scripts/dependencies` installs it (${debian}); elsewhere "
                        "`spack load ${spack}` or `module load ${spack}`, or add its prefix to CMAKE_PREFIX_PATH.")
  endif()
endfunction()

# An installed Kokkos takes precedence over the one that scripts/kokkos built into its cache.
set(flavour)
if(NOT MYLOS_ENABLE_OPENMP)
  set(flavour --serial)
endif()
if(MYLOS_ENABLE_CUDA)
  list(APPEND flavour --cuda ${MYLOS_CUDA_ARCHITECTURE})
elseif(MYLOS_ENABLE_HIP)
  list(APPEND flavour --hip ${MYLOS_HIP_ARCHITECTURE})
endif()
if(CMAKE_CROSSCOMPILING)
  list(APPEND flavour --toolchain "${CMAKE_TOOLCHAIN_FILE}")
endif()
execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/kokkos" --where ${flavour}
                OUTPUT_VARIABLE mylos_kokkos_prefix OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(mylos_kokkos_prefix)
  if(CMAKE_CROSSCOMPILING)
    list(APPEND CMAKE_FIND_ROOT_PATH "${mylos_kokkos_prefix}")
  endif()
  # A build tree of an earlier version may remember what scripts/kokkos built then.
  cmake_path(GET mylos_kokkos_prefix PARENT_PATH cache)
  foreach(package Kokkos KokkosKernels)
    cmake_path(IS_PREFIX cache "${${package}_DIR}" NORMALIZE is_ours)
    cmake_path(IS_PREFIX mylos_kokkos_prefix "${${package}_DIR}" NORMALIZE is_current)
    if(is_ours AND NOT is_current)
      unset(${package}_DIR CACHE)
    endif()
  endforeach()
endif()
find_package(Kokkos 4.6 CONFIG QUIET)
if(NOT Kokkos_FOUND AND mylos_kokkos_prefix)
  set(Kokkos_ROOT "${mylos_kokkos_prefix}")
  set(KokkosKernels_ROOT "${mylos_kokkos_prefix}")
  find_package(Kokkos 4.6 CONFIG QUIET)
endif()
mylos_require(Kokkos_FOUND "Kokkos 4.6 or later" "built by scripts/kokkos" "kokkos")
find_package(KokkosKernels CONFIG QUIET)
mylos_require(KokkosKernels_FOUND "Kokkos Kernels" "built by scripts/kokkos" "kokkos-kernels")
if(NOT TARGET Kokkos::kokkoskernels)
  message(FATAL_ERROR "The Kokkos Kernels in ${KokkosKernels_DIR} has no target Kokkos::kokkoskernels. Those of 4.x and 5.x are known.")
endif()
if(MYLOS_ENABLE_OPENMP AND NOT "OPENMP" IN_LIST Kokkos_DEVICES)
  message(FATAL_ERROR "MYLOS_ENABLE_OPENMP is ON, but the Kokkos in ${Kokkos_DIR} has only ${Kokkos_DEVICES}. "
                      "Point Kokkos_ROOT at one with OpenMP (Spack: kokkos+openmp), or set -DMYLOS_ENABLE_OPENMP=OFF.")
elseif(NOT MYLOS_ENABLE_OPENMP AND "OPENMP" IN_LIST Kokkos_DEVICES)
  message(FATAL_ERROR "MYLOS_ENABLE_OPENMP is OFF, but the Kokkos in ${Kokkos_DIR} has ${Kokkos_DEVICES}. "
                      "Point Kokkos_ROOT at one without OpenMP (scripts/kokkos --serial builds it), or set -DMYLOS_ENABLE_OPENMP=ON.")
endif()

if(MYLOS_ENABLE_CUDA AND NOT "CUDA" IN_LIST Kokkos_DEVICES)
  message(FATAL_ERROR "MYLOS_ENABLE_CUDA is ON, but the Kokkos in ${Kokkos_DIR} has only ${Kokkos_DEVICES}. Point "
                      "Kokkos_ROOT at one with CUDA (Spack: kokkos+cuda cuda_arch=${MYLOS_CUDA_ARCHITECTURE}; here: "
                      "scripts/dependencies --cuda ${MYLOS_CUDA_ARCHITECTURE}), or set -DMYLOS_ENABLE_CUDA=OFF.")
elseif(NOT MYLOS_ENABLE_CUDA AND "CUDA" IN_LIST Kokkos_DEVICES)
  message(FATAL_ERROR "MYLOS_ENABLE_CUDA is OFF, but the Kokkos in ${Kokkos_DIR} computes on GPUs. Point Kokkos_ROOT at "
                      "one without CUDA, or set -DMYLOS_ENABLE_CUDA=ON.")
endif()
string(TOUPPER "${MYLOS_HIP_ARCHITECTURE}" hip_architecture)
# That for AMD_GFX942_APU lets hosts access memory of devices, by which sources tell a host build.
if(MYLOS_ENABLE_HIP AND NOT "AMD_GFX${hip_architecture}" IN_LIST Kokkos_ARCH)
  message(FATAL_ERROR "MYLOS_ENABLE_HIP is ON for gfx${MYLOS_HIP_ARCHITECTURE}, but the Kokkos in ${Kokkos_DIR} has ${Kokkos_DEVICES} for "
                      "${Kokkos_ARCH}. Point Kokkos_ROOT at one with HIP (Spack: kokkos+rocm amdgpu_target=gfx${MYLOS_HIP_ARCHITECTURE}; "
                      "here: scripts/kokkos --hip ${MYLOS_HIP_ARCHITECTURE}), or set -DMYLOS_ENABLE_HIP=OFF.")
elseif(NOT MYLOS_ENABLE_HIP AND "HIP" IN_LIST Kokkos_DEVICES)
  message(FATAL_ERROR "MYLOS_ENABLE_HIP is OFF, but the Kokkos in ${Kokkos_DIR} computes on GPUs of AMD. Point Kokkos_ROOT at one "
                      "without HIP, or set -DMYLOS_ENABLE_HIP=ON.")
endif()
if(Kokkos_ENABLE_IMPL_HIP_MALLOC_ASYNC)
  message(FATAL_ERROR "The Kokkos in ${Kokkos_DIR} has Kokkos_ENABLE_IMPL_HIP_MALLOC_ASYNC, its default: GPUs cannot share memory that "
                      "hipMallocAsync gives, as RCCL and MPI do. Build Kokkos with -DKokkos_ENABLE_IMPL_HIP_MALLOC_ASYNC=OFF.")
endif()
if(Kokkos_ENABLE_IMPL_CUDA_MALLOC_ASYNC)
  message(FATAL_ERROR "The Kokkos in ${Kokkos_DIR} has Kokkos_ENABLE_IMPL_CUDA_MALLOC_ASYNC: GPUs cannot share memory that "
                      "cudaMallocAsync gives, as NCCL and MPI do. Point Kokkos_ROOT at one without it (Spack: kokkos~alloc_async).")
endif()

find_package(fmt CONFIG QUIET)
mylos_require(fmt_FOUND "fmt" libfmt-dev fmt)
find_package(nlohmann_json CONFIG QUIET)
mylos_require(nlohmann_json_FOUND "nlohmann_json" nlohmann-json3-dev nlohmann-json)
find_package(cxxopts 3.0 CONFIG QUIET)
mylos_require(cxxopts_FOUND "cxxopts 3.0 or later" libcxxopts-dev cxxopts)

find_package(PkgConfig QUIET)
mylos_require(PkgConfig_FOUND "pkg-config" pkg-config pkgconf)
pkg_check_modules(utf8proc QUIET IMPORTED_TARGET libutf8proc)
mylos_require(utf8proc_FOUND "utf8proc" libutf8proc-dev utf8proc)
pkg_check_modules(pcre2 QUIET IMPORTED_TARGET libpcre2-8>=10.40)
mylos_require(pcre2_FOUND "PCRE2 10.40 or later" libpcre2-dev pcre2)

pkg_check_modules(sentencepiece QUIET IMPORTED_TARGET sentencepiece)
mylos_require(sentencepiece_FOUND "SentencePiece" libsentencepiece-dev sentencepiece)

find_package(JPEG QUIET)
mylos_require(JPEG_FOUND "libjpeg-turbo" libjpeg-dev libjpeg-turbo)
find_package(PNG QUIET)
mylos_require(PNG_FOUND "libpng" libpng-dev libpng)
find_package(ZLIB QUIET)
mylos_require(ZLIB_FOUND "zlib" zlib1g-dev zlib-api)

if(MYLOS_ENABLE_ONEDNN)
  find_package(dnnl CONFIG QUIET)
  mylos_require(dnnl_FOUND "oneDNN (or set -DMYLOS_ENABLE_ONEDNN=OFF)" libdnnl-dev onednn)
  if(dnnl_VERSION VERSION_GREATER_EQUAL 3)
    message(FATAL_ERROR "oneDNN ${dnnl_VERSION} in ${dnnl_DIR} has another interface than 2.6 and 2.7: name one of these with -Ddnnl_DIR, "
                        "or set -DMYLOS_ENABLE_ONEDNN=OFF.")
  endif()
endif()

if(mylos_gpus AND MYLOS_ENABLE_ONEDNN)
  message(FATAL_ERROR "oneDNN computes on the host, and this build on GPUs: set -DMYLOS_ENABLE_ONEDNN=OFF (cuBLASLt takes "
                      "its place), or -DMYLOS_ENABLE_CUDA=OFF and -DMYLOS_ENABLE_HIP=OFF.")
endif()
if(MYLOS_ENABLE_CUDA)
  find_package(CUDAToolkit QUIET)
  mylos_require(CUDAToolkit_FOUND "The CUDA toolkit" nvidia-cuda-toolkit cuda)
  # Such a build compiles, and its kernels read wrong arguments (core/device.hpp, check_kernel_arguments).
  if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.9 AND Kokkos_VERSION VERSION_GREATER_EQUAL 4.7
     AND NOT "IMPL_VIEW_LEGACY" IN_LIST Kokkos_OPTIONS)
    get_target_property(mylos_kokkos_headers Kokkos::kokkoscore INTERFACE_INCLUDE_DIRECTORIES)
    find_file(mylos_mdspan_config experimental/__p0009_bits/config.hpp HINTS ${mylos_kokkos_headers}
              "${Kokkos_DIR}/../../../include" NO_DEFAULT_PATH NO_CACHE)
    set(mylos_no_unique_address)
    if(mylos_mdspan_config)
      file(STRINGS "${mylos_mdspan_config}" mylos_no_unique_address REGEX "!defined\\(__NVCC__\\) \\|\\| MDSPAN_HAS_CXX_20\\)")
    endif()
    if(mylos_no_unique_address)
      message(FATAL_ERROR "The Kokkos ${Kokkos_VERSION} in ${Kokkos_DIR} does not work with CUDA ${CUDAToolkit_VERSION}: kernels would "
                          "read their arguments where the host did not write them. Use Kokkos 4.7.2, or 5.0 and later, or one built "
                          "with -DKokkos_ENABLE_IMPL_VIEW_LEGACY=ON, and name it with -DKokkos_DIR in this build tree.")
    endif()
  endif()
endif()

if(MYLOS_ENABLE_MPI)
  find_package(MPI QUIET COMPONENTS C CXX)
  mylos_require(MPI_FOUND "MPI (or set -DMYLOS_ENABLE_MPI=OFF)" libopenmpi-dev openmpi)
endif()

if(MYLOS_ENABLE_NCCL)
  if(NOT mylos_gpus OR NOT MYLOS_ENABLE_MPI)
    message(FATAL_ERROR "NCCL joins the GPUs of MPI's ranks: set -DMYLOS_ENABLE_CUDA=ON or -DMYLOS_ENABLE_HIP=ON, and "
                        "-DMYLOS_ENABLE_MPI=ON, or -DMYLOS_ENABLE_NCCL=OFF.")
  endif()
  if(MYLOS_ENABLE_HIP)
    find_path(NCCL_INCLUDE_DIR rccl/rccl.h HINTS "$ENV{ROCM_PATH}/include")
    mylos_require(NCCL_INCLUDE_DIR "RCCL's header (or set -DMYLOS_ENABLE_NCCL=OFF)" librccl-dev rccl)
  else()
    find_path(NCCL_INCLUDE_DIR nccl.h HINTS "$ENV{NCCL_ROOT}/include" ${CUDAToolkit_INCLUDE_DIRS})
    mylos_require(NCCL_INCLUDE_DIR "NCCL's header (or set -DMYLOS_ENABLE_NCCL=OFF)" libnccl-dev nccl)
  endif()
endif()

if(MYLOS_ENABLE_CUDNN)
  if(NOT MYLOS_ENABLE_CUDA)
    message(FATAL_ERROR "cuDNN computes on GPUs: set -DMYLOS_ENABLE_CUDA=ON, or -DMYLOS_ENABLE_CUDNN=OFF.")
  endif()
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/cudnn-headers" --where OUTPUT_VARIABLE mylos_cudnn_prefix
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_path(CUDNN_INCLUDE_DIR cudnn.h HINTS "$ENV{CUDNN_ROOT}/include" ${CUDAToolkit_INCLUDE_DIRS} "${mylos_cudnn_prefix}/include")
  mylos_require(CUDNN_INCLUDE_DIR "cuDNN's header (or set -DMYLOS_ENABLE_CUDNN=OFF)" "fetched by scripts/cudnn-headers" cudnn)
  find_path(CUDNN_FRONTEND_INCLUDE_DIR cudnn_frontend.h HINTS "$ENV{CUDNN_FRONTEND_ROOT}/include" "${mylos_cudnn_prefix}/include")
  mylos_require(CUDNN_FRONTEND_INCLUDE_DIR "cudnn-frontend (or set -DMYLOS_ENABLE_CUDNN=OFF)" "fetched by scripts/cudnn-headers"
                cudnn-frontend)
endif()

set(HDF5_PREFER_PARALLEL ${MYLOS_ENABLE_MPI})
find_package(HDF5 QUIET COMPONENTS C)
mylos_require(HDF5_FOUND "HDF5" libhdf5-openmpi-dev hdf5+mpi)
if(MYLOS_ENABLE_MPI AND NOT HDF5_IS_PARALLEL)
  message(FATAL_ERROR "MYLOS_ENABLE_MPI needs a parallel HDF5, and ${HDF5_C_LIBRARIES} is not. "
                      "On Debian `scripts/dependencies` installs libhdf5-openmpi-dev; in Spack it is hdf5+mpi.")
endif()
# The headers of a parallel HDF5 include mpi.h, even for a serial program.
if(HDF5_IS_PARALLEL AND NOT MYLOS_ENABLE_MPI)
  find_package(MPI QUIET COMPONENTS C)
  mylos_require(MPI_FOUND "MPI, whose headers the parallel HDF5 needs," libopenmpi-dev openmpi)
endif()
add_library(mylos_hdf5 INTERFACE)
add_library(mylos::hdf5 ALIAS mylos_hdf5)
target_link_libraries(mylos_hdf5 INTERFACE hdf5::hdf5)
if(HDF5_IS_PARALLEL)
  target_link_libraries(mylos_hdf5 INTERFACE MPI::MPI_C)
endif()

if(MYLOS_ENABLE_TESTS)
  find_package(GTest CONFIG QUIET)
  mylos_require(GTest_FOUND "GoogleTest (or set -DMYLOS_ENABLE_TESTS=OFF)" "libgtest-dev libgmock-dev" googletest)
endif()
