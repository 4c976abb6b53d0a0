// The recorded models in every mode on all ranks of this program: outputs, gradients and AdamW's steps.

#include "tests/support/rank_outcomes.hpp"
#include "tests/tasks/language_modeling/llama_reference.hpp"

#include <algorithm>

namespace mylos::tests {
namespace {

namespace fs = std::filesystem;
using parallel::ModeKind;

class LlamaModes : public LlamaReference {
 protected:
  /// Runs `check` for each folder, provider and mode, with an engine on all ranks.
  void for_each_engine(const std::function<void(LlamaEngine& engine, const fs::path& folder)>& check) {
    for_each_llama([&](const fs::path& folder, const std::string& provider) {
      for (const ModeKind mode : every_mode) {
        SCOPED_TRACE(to_string(mode));
        parallel::Communicator& world = launch().world();
        const std::size_t shards = parallel::ranks_that_split(mode, hybrid_shard_size(), world.size());
        LlamaEngine engine(folder, provider, {.mode = mode, .shards = shards, .world = &world});
        check(engine, folder);
      }
    });
  }

  /// Compares the gradients of the elements of a tensor that this rank owns.
  void compare_slices(LlamaEngine& engine, const ParameterTensor& row, const std::vector<float>& expected) {
    for (const ParameterSlice& slice : engine.mode->slices()) {
      const std::size_t begin = std::max(slice.begin, row.offset), end = std::min(slice.end, row.offset + row.size);
      if (slice.unit != row.unit || begin >= end) continue;
      const Values gradient = host_values(slice.gradient);
      Values whole(expected.begin(), expected.end());
      std::copy_n(gradient.begin() + static_cast<std::ptrdiff_t>(begin - slice.begin), end - begin,
                  whole.begin() + static_cast<std::ptrdiff_t>(begin - row.offset));
      compare(whole, expected, row.name);
    }
  }
};

TEST_F(LlamaModes, Outputs) {
  for_each_engine([&](LlamaEngine& engine, const fs::path& folder) { compare_outputs(engine, folder); });
}

/// Every rank processes all texts and contributes its fraction of the loss.
TEST_F(LlamaModes, Gradients) {
  for_each_engine([&](LlamaEngine& engine, const fs::path& folder) {
    const RecordedTexts& texts = engine.task.texts();
    const data::SafetensorsFile recorded(folder / "gradients.safetensors");
    Batch batch;
    texts.fill(batch);
    engine.mode->begin_step(engine.space);
    engine.mode->begin_micro_batch(true);
    const Vector<float> losses("test::losses", texts.lengths.size());
    const auto parts = static_cast<float>(texts.predicted() * engine.ranks.size());
    engine.task.model().train(engine.pass(), batch, 1.0f / parts, losses);
    engine.mode->finish_gradients(engine.space);
    for (const ParameterTensor& row : engine.store.table().tensors()) {
      compare_slices(engine, row, recorded.read_float(row.name));
    }
  });
}

TEST_F(LlamaModes, AdamWSteps) {
  for_each_engine([&](LlamaEngine& engine, const fs::path& folder) { compare_steps(engine, folder); });
}

}  // namespace
}  // namespace mylos::tests
