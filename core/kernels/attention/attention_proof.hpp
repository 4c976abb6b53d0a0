#pragma once

#include "core/kernels/attention/attention_candidates.hpp"
#include "core/kernels/attention/packed_attention.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>

/// The proof that an attention kernel computes on this device what the portable kernel computes, before a run uses it.
namespace mylos {

/// The largest error of `out` in an element type T, as a fraction of its largest element; that of gradients is twice as
/// large. Also the bound of the unit tests, beside a twin in double.
template <class T>
inline constexpr double attention_tolerance = std::is_same_v<T, float>      ? 3e-6
                                              : std::is_same_v<T, bfloat16> ? 1.2e-2
                                                                            : 1.5e-3;

/// Rows of the packed sequences: uneven, and one of them longer than three tiles of the largest kernel, which has 128.
inline constexpr std::array<std::size_t, 3> proof_lengths = {67, 401, 130};

/// The largest window of the proof, so that a longer one is met too.
inline constexpr int proof_window = 75;

/// How the results of a kernel compare with those of the portable kernel.
struct AttentionProof {
  AttentionKernel kernel = AttentionKernel::portable;
  double share = 0.0;      ///< the largest difference as a fraction of what is allowed; 0 if there is a fault
  std::string fault = {};  ///< what differs, or the kernel's error, on one line; empty if the kernel agrees

  bool agrees() const { return fault.empty(); }
};

/// Computes both passes over the arrays.
template <class T>
using AttentionPasses = std::function<void(const ExecutionSpace&, const PackedAttention<T>&)>;

/// Computes attention forward and backward over sequences of proof_lengths, by `passes` and by the portable kernel, and
/// compares `out` and the gradients of queries, keys and values. The arrays hold NaN where the passes must write.
/// Takes about 5 T (A + KV) D elements of temporary memory, and waits for the device. Errors: those of `passes`.
template <class T>
AttentionProof prove_attention_passes(const ExecutionSpace& space, const AttentionUse& use,
                                      const AttentionPasses<T>& passes);

/// The same for a kernel of this build, with the heads, mask, dropout and element type of `use`. An error of the
/// kernel, or a lack of memory, is a fault.
AttentionProof prove_attention(const ExecutionSpace& space, AttentionKernel kernel, const AttentionUse& use);

}  // namespace mylos
