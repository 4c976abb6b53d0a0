#pragma once

#include "tests/support/temporary.hpp"

#include <nlohmann/json.hpp>

#include <cstddef>
#include <filesystem>
#include <string>

namespace mylos::tests {

/// Returns the configuration of a ResNet with two blocks.
inline nlohmann::json small_classifier_config(std::size_t labels, std::size_t channels = 1) {
  nlohmann::json names;
  for (std::size_t i = 0; i < labels; ++i) names[std::to_string(i)] = std::to_string(i);
  return {{"model_type", "resnet"}, {"num_channels", channels}, {"embedding_size", 8}, {"hidden_sizes", {8, 16}},
          {"depths", {1, 1}},       {"layer_type", "basic"},    {"id2label", names}};
}

/// Writes a model directory without weights.
inline void write_small_classifier(const std::filesystem::path& directory, std::size_t labels = 10,
                                   std::size_t channels = 1) {
  write_file(directory / "config.json", small_classifier_config(labels, channels).dump());
}

}  // namespace mylos::tests
