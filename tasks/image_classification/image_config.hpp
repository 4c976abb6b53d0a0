#pragma once

#include "data/images/image_set.hpp"
#include "data/images/image_transform.hpp"
#include "families/interface/image_format.hpp"
#include "tasks/interface/run_config.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <limits>
#include <optional>
#include <vector>

/// Settings of image classification, in addition to those of every task. Each field documents its unit and an example.
namespace mylos::tasks {

struct ImageConfig {
  std::size_t image_size = 0;  ///< height and width of the model's input, in pixels; 0 = see resolve_input()
  data::Augmentation augment = data::Augmentation::none;
  std::vector<float> mean, deviation;       ///< per channel, for values from 0 to 1; empty = see resolve_input()
  double label_smoothing = 0.0;             ///< label smoothing of the training loss, e.g. 0.1
  std::size_t batch_norm_group = 0;         ///< images per group, e.g. 16; 0 = see group_size(); or batch_of_rank
  std::optional<families::ImageStem> stem;  ///< nullopt = the model's; imagenet for a model without a directory
  std::filesystem::path weights;            ///< directory of the weights of a model given by name; empty = none
  std::size_t labels = 0;                   ///< labels of the model; 0 = those of the model, else of the data
  std::size_t loader_threads = 2;           ///< decoding threads per rank that read ahead
  std::filesystem::path order;              ///< JSON lines, a list of image numbers per step; empty = shuffled
  bool skips_damaged = false;               ///< go on without damaged pictures instead of ending with an error
  data::ImagePart part = data::ImagePart::training;  ///< the part that prepare reads from a directory with both
  bool strict = false;                               ///< prepare stops at a damaged picture
  bool use_syn = false;                              ///< train on random images
  std::size_t steps_syn = 0;                         ///< with `use_syn`: batches per epoch
};

/// Returns the settings of an image classification run.
inline const ImageConfig& image_config(const RunConfig& run) { return settings_of<ImageConfig>(run); }
inline ImageConfig& image_config(RunConfig& run) { return settings_of<ImageConfig>(run); }

/// BatchNorm groups of as many images as a rank has in a batch. Known, and replaced by the number, once the ranks are.
inline constexpr std::size_t batch_of_rank = std::numeric_limits<std::size_t>::max();

/// Returns the images per BatchNorm group if batches have `batch` images.
inline std::size_t group_size(const ImageConfig& config, std::size_t batch) {
  constexpr std::size_t usual = 32;
  return std::min(config.batch_norm_group > 0 ? config.batch_norm_group : usual, batch);
}

}  // namespace mylos::tasks
