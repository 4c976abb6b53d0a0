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

/// What engines with recorded models are compared with.
namespace mylos::tests {

nlohmann::json read_recorded_json(const std::filesystem::path& path);

/// Rows of a recorded (B, S, columns) array that are not padding.
std::vector<float> without_padding(const RecordedTexts& texts, const data::SafetensorsFile& file, const char* name);

/// The losses of these texts, sample by sample, as prediction gives them.
Values predicted_losses(LlamaEngine& engine, const RecordedTexts& texts);

/// Tests on every folder of $MYLOS_REFERENCE/llama that holds batch.safetensors. The largest difference of a test is
/// one of its properties.
class LlamaReference : public testing::Test {
 protected:
  void TearDown() override;
  /// Runs `check` for each folder with each provider of exact products.
  void for_each_llama(
      const std::function<void(const std::filesystem::path& folder, const std::string& provider)>& check);
  /// Each element differs by at most 1e-5 of the largest of `expected`.
  void compare(std::span<const double> actual, std::span<const float> expected, const std::string& what);
  void compare(std::span<const float> actual, std::span<const float> expected, const std::string& what);
  /// Logits of all texts, and the loss.
  void compare_outputs(LlamaEngine& engine, const std::filesystem::path& folder);
  /// AdamW's recorded steps, and the parameters after them.
  void compare_steps(LlamaEngine& engine, const std::filesystem::path& folder);

 private:
  double worst_ = 0.0;
};

}  // namespace mylos::tests
