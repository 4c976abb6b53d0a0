#pragma once

#include <string>
#include <string_view>
#include <vector>

/// The names of the providers of matrix products. Defined in gemm.cpp, which has their table.
namespace mylos {

/// Returns the names of the providers in this build, the portable one first.
std::vector<std::string> built_gemm_providers();

/// Returns the names of those that do not round float operands, whether they can be used on this machine or not.
std::vector<std::string> built_exact_gemm_providers();

/// Returns the reason why the provider `name` of this build cannot be used here, in one line that says what to change;
/// empty if it can. Some providers load a vendor's library at the first call.
std::string gemm_provider_obstacle(std::string_view name);

/// Returns whether the provider `name` has never run on a device (core/kernels/products/gemm_proof.hpp).
bool is_untried_gemm_provider(std::string_view name);

/// Returns the names of the providers in this build that can be used here, the portable one first.
std::vector<std::string> gemm_providers();

/// Returns the names of those that do not round float operands. Timing chooses only among these; less exact ones must
/// be requested (--tf32).
std::vector<std::string> exact_gemm_providers();

/// Returns the provider that rounds float operands to TF32 (10 fraction bits) for tensor cores; empty if the build has
/// none.
std::string tf32_gemm_provider();

/// Returns the provider used if none was chosen for a product: the last and most specialised one in this build.
std::string default_gemm_provider();

}  // namespace mylos
