// The unit for which tests/support/CMakeLists.txt precompiles headers. Every target needs a file.
