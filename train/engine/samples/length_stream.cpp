#include "train/engine/samples/length_stream.hpp"

#include "core/base/error.hpp"

#include <utility>

namespace mylos::train {

LengthStream::LengthStream(std::vector<std::size_t> lengths, std::size_t batch, std::uint64_t seed, WorkKind work)
    : lengths_(std::move(lengths)), sampler_(lengths_.size(), batch, seed), work_(std::move(work)) {
  require(!lengths_.empty(), "LengthStream: there are no samples");
}

}  // namespace mylos::train
