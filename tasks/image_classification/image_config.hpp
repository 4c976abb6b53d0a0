#pragma once

#include "data/huggingface/resnet_config.hpp"
#include "data/images/image_set.hpp"
#include "data/images/image_transform.hpp"
#include "tasks/interface/run_config.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <vector>

/// What image classification is told beside what every task is. Each field says its unit and an example.
namespace mylos::tasks {

struct ImageConfig {
  std::size_t image_size = 0;  ///< height and width that the model sees, in pixels; 0 = see resolve_input()
  data::Augmentation augment = data::Augmentation::none;
  std::vector<float> mean, deviation;    ///< of each channel, in values from 0 to 1; empty = see resolve_input()
  double label_smoothing = 0.0;          ///< of the training loss, e.g. 0.1
  std::size_t batch_norm_group = 0;      ///< images, e.g. 16; 0 = see group_size()
  std::optional<data::ResnetStem> stem;  ///< empty = the model's, imagenet for one without a directory
  std::size_t labels = 0;                ///< of the model; 0 = the model's, else the data's
  std::size_t loader_threads = 2;        ///< of a rank that decode ahead
  std::filesystem::path order;           ///< JSON lines, a list of image numbers a step; empty = shuffled
  data::ImagePart part = data::ImagePart::training;  ///< what prepare takes of a directory with both
  bool strict = false;                               ///< prepare ends at a damaged picture
  bool use_syn = false;                              ///< train on images that are drawn:
  std::size_t steps_syn = 0;                         ///< so many batches of them
  bool use_fsdp = false, use_amp = false;            ///< other names of --mode sharded and --precision bfloat16
};

/// That of a run of image classification.
inline const ImageConfig& image_config(const RunConfig& run) { return settings_of<ImageConfig>(run); }
inline ImageConfig& image_config(RunConfig& run) { return settings_of<ImageConfig>(run); }

/// Images of a BatchNorm group where batches have `batch` of them.
inline std::size_t group_size(const ImageConfig& config, std::size_t batch) {
  constexpr std::size_t usual = 32;
  return std::min(config.batch_norm_group > 0 ? config.batch_norm_group : usual, batch);
}

}  // namespace mylos::tasks
