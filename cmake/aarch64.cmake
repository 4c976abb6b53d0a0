# Cross-compiles for 64-bit Arm with what `scripts/check-architectures aarch64` has unpacked into its cache, and runs programs by QEMU.

set(mylos_cache "$ENV{MYLOS_PREFIX}") # as in scripts/common.sh
if(NOT mylos_cache)
  set(mylos_cache "$ENV{XDG_CACHE_HOME}")
  if(NOT mylos_cache)
    set(mylos_cache "$ENV{HOME}/.cache")
  endif()
  string(APPEND mylos_cache "/mylos")
endif()

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT "${mylos_cache}/aarch64-debian-bookworm")
set(CMAKE_CROSSCOMPILING_EMULATOR "${CMAKE_SYSROOT}/usr/bin/qemu-aarch64-static" -L "${CMAKE_SYSROOT}")
foreach(tool C_COMPILER=gcc CXX_COMPILER=g++ AR=ar RANLIB=ranlib)
  string(REPLACE "=" ";" tool "${tool}")
  list(GET tool 0 variable)
  list(GET tool 1 name)
  set(CMAKE_${variable} "${CMAKE_SYSROOT}/tools/aarch64-linux-gnu-${name}" CACHE FILEPATH "" FORCE)
endforeach()

# Packages are those of the sysroot, and that of scripts/kokkos.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(mylos_libraries "${CMAKE_SYSROOT}/usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
set(ENV{PKG_CONFIG_LIBDIR} "${mylos_libraries}/pkgconfig")
set(ENV{PKG_CONFIG_PATH} "")

# CMake's modules would ask compiler wrappers, of which only this machine's run.
foreach(language C CXX)
  set(MPI_${language}_COMPILER OFF)
  set(MPI_${language}_LIB_NAMES mpi)
  set(MPI_${language}_HEADER_DIR "${mylos_libraries}/openmpi/include")
endforeach()
set(MPI_mpi_LIBRARY "${mylos_libraries}/openmpi/lib/libmpi.so")
set(MPI_CXX_SKIP_MPICXX ON)
set(HDF5_C_COMPILER_EXECUTABLE OFF)
set(HDF5_ROOT "${mylos_libraries}/hdf5/openmpi")
