#include "train/engine/length_task.hpp"

#include "core/base/error.hpp"

#include <stdexcept>
#include <utility>

namespace mylos::train {
namespace {

[[noreturn]] void refuse() { throw std::logic_error("a plan computes nothing"); }

}  // namespace

LengthTask::LengthTask(const nn::Model& model, std::vector<std::size_t> lengths, std::size_t batch, std::uint64_t seed)
    : model_(model), lengths_(std::move(lengths)), sampler_(lengths_.size(), batch, seed) {
  require(!lengths_.empty(), "LengthTask: there are no samples");
}

void LengthTask::initial_values(const RowWriter&) const { refuse(); }
void LengthTask::assemble(std::span<const std::size_t>, std::span<const std::uint32_t>, Batch&) const { refuse(); }
void LengthTask::write_results(const std::filesystem::path&) const { refuse(); }
std::unique_ptr<ModelExport> LengthTask::start_export(const std::filesystem::path&) const { refuse(); }

}  // namespace mylos::train
