#include "app/program/cpu_features.hpp"

/// Compiled with the flags of the program, so that it records the features that the program needs. Contains only data,
/// none of whose instructions run.
namespace mylos::app {

// A defined macro expands to 1; an undefined one remains its own name.
#define MYLOS_TEXT(x) #x
#define MYLOS_IS_BUILT(name, macro, ...) MYLOS_TEXT(macro)[0] == '1',

constexpr bool built_cpu_features[cpu_feature_count] = {MYLOS_FOR_EACH_CPU_FEATURE(MYLOS_IS_BUILT)};

}  // namespace mylos::app
