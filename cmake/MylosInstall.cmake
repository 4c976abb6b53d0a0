# Installs the program, the libraries with their headers as the CMake package mylos, and files to start with in
# share/mylos: example data, a tiny model, job scripts, and tests of an installed tree.

include(CMakePackageConfigHelpers)

# An installed program finds the libraries it was linked with, without references to the build tree.
set_target_properties(mylos PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
install(TARGETS mylos RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
# Batch systems copy job scripts, which then find their functions on the path or beside the program.
install(FILES "${PROJECT_SOURCE_DIR}/jobscripts/mylos-job.sh" DESTINATION "${CMAKE_INSTALL_BINDIR}")

get_property(mylos_exported GLOBAL PROPERTY MYLOS_FOLDERS)
list(FILTER mylos_exported EXCLUDE REGEX "^app")
set(targets mylos_options mylos_hdf5)
set_target_properties(mylos_options PROPERTIES EXPORT_NAME options)
set_target_properties(mylos_hdf5 PROPERTIES EXPORT_NAME hdf5)
foreach(name IN LISTS mylos_exported)
  list(APPEND targets mylos_${name})
endforeach()
# Headers include each other by paths from the root of the tree: "core/batch.hpp".
set(folders ${mylos_exported})
list(TRANSFORM folders REPLACE "_.*" "")
list(REMOVE_DUPLICATES folders)
foreach(folder IN LISTS folders)
  install(
    DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}"
    DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/mylos"
    FILES_MATCHING
    PATTERN "*.hpp")
endforeach()
install(TARGETS ${targets} EXPORT mylos ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")

set(mylos_package "${CMAKE_INSTALL_LIBDIR}/cmake/mylos")
install(
  EXPORT mylos
  NAMESPACE mylos::
  FILE mylos-targets.cmake
  DESTINATION "${mylos_package}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/mylos-config.cmake.in" "${PROJECT_BINARY_DIR}/package/mylos-config.cmake"
                              INSTALL_DESTINATION "${mylos_package}" NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/mylos-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/mylos-config.cmake" "${PROJECT_BINARY_DIR}/package/mylos-config-version.cmake"
        DESTINATION "${mylos_package}")

set(mylos_share "${CMAKE_INSTALL_DATADIR}/mylos")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples" DESTINATION "${mylos_share}")
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/jobscripts"
  DESTINATION "${mylos_share}"
  USE_SOURCE_PERMISSIONS
  PATTERN mylos-job.sh EXCLUDE)
# Tests of an installed tree, also in share/mylos. The top of their CMakeLists.txt tells how to run them.
install(DIRECTORY "${PROJECT_SOURCE_DIR}/tests/install/smoke" DESTINATION "${mylos_share}")

# The program writes this file after linking (app/CMakeLists.txt). A program built for another CPU cannot, so it is
# optional.
install(
  FILES "${PROJECT_BINARY_DIR}/manual/mylos.1"
  DESTINATION "${CMAKE_INSTALL_MANDIR}/man1"
  OPTIONAL)
install(
  FILES "${PROJECT_BINARY_DIR}/manual/mylos"
  DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions"
  OPTIONAL)
