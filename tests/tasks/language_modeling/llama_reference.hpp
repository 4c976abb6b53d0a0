#pragma once

#include "tests/support/arrays.hpp"
#include "tests/tasks/language_modeling/recorded_llama.hpp"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

/// Comparisons of engines with recorded models.
namespace mylos::tests {

nlohmann::json read_recorded_json(const std::filesystem::path& path);

/// Returns the rows of a recorded array (B, S, columns) that are not padding.
std::vector<float> without_padding(const RecordedTexts& texts, const data::SafetensorsFile& file, const char* name);

/// Returns the losses of these texts per sample, as computed in prediction.
Values predicted_losses(LlamaEngine& engine, const RecordedTexts& texts);

/// Tests on every recorded Llama with a batch. Each test records its largest difference as a property.
class LlamaReference : public testing::Test {
 protected:
  void TearDown() override;
  /// Runs `check` for each folder with each exact GEMM provider.
  void for_each_llama(
      const std::function<void(const std::filesystem::path& folder, const std::string& provider)>& check);
  /// Expects that each element differs by at most 1e-5 of the largest element of `expected`.
  void compare(std::span<const double> actual, std::span<const float> expected, const std::string& what);
  void compare(std::span<const float> actual, std::span<const float> expected, const std::string& what);
  /// Compares the logits of all texts, and the loss.
  void compare_outputs(LlamaEngine& engine, const std::filesystem::path& folder);
  /// Compares AdamW's recorded steps, and the parameters after them.
  void compare_steps(LlamaEngine& engine, const std::filesystem::path& folder);

 private:
  double worst_ = 0.0;
};

}  // namespace mylos::tests
