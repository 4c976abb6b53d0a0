#pragma once

#include "parallel/launch/launch.hpp"

namespace mylos::tests {

/// The ranks of this test program, which main() launched.
parallel::Launch& launch();

}  // namespace mylos::tests
