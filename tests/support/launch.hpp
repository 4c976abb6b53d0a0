#pragma once

#include "parallel/launch/launch.hpp"

namespace mylos::tests {

/// Returns the ranks of this test program, which main() launched.
parallel::Launch& launch();

}  // namespace mylos::tests
