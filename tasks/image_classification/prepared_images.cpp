#include "tasks/image_classification/image_classification_kind.hpp"

#include "core/base/text/quantities.hpp"
#include "core/base/usage_error.hpp"
#include "data/images/cifar_images.hpp"
#include "data/images/first_images.hpp"
#include "data/images/idx_images.hpp"
#include "data/images/prepare_images.hpp"
#include "tasks/image_classification/image_config.hpp"
#include "tasks/image_classification/image_data.hpp"
#include "tasks/image_classification/image_labels.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>

namespace mylos::tasks {
namespace {

bool has_parts(const std::filesystem::path& data) {
  return std::filesystem::is_directory(data) && (data::find_idx_files(data, data::ImagePart::test) ||
                                                 data::find_cifar_files(FileReader(), data, data::ImagePart::test));
}

}  // namespace

void prepare_image_file(const RunConfig& run, const std::filesystem::path& data, const std::filesystem::path& output,
                        const Notice& notice) {
  if (output.extension() != ".h5") {
    throw UsageError(
        fmt::format("--output {}: images are prepared as one file, whose name ends in .h5", output.string()));
  }
  const ImageConfig& config = image_config(run);
  if (config.part == data::ImagePart::test && !has_parts(data)) {
    throw UsageError(fmt::format(
        "--part test: {} has no test files as CIFAR's or MNIST's directories have; leave it out", data.string()));
  }
  std::unique_ptr<data::ImageSet> set = data::open_images(FileReader(), data.string(), config.part);
  note_passed_over(*set, data, notice);
  if (run.task.train_limit) set = data::first_images(std::move(set), *run.task.train_limit);
  const data::PrepareCounts counts =
      data::prepare_images(*set, output, {.strict = config.strict, .threads = config.loader_threads});
  if (counts.left_out > 0) {
    notice(
        fmt::format("{} left out, the first: {}", count_of(counts.left_out, "damaged picture"), counts.first_left_out));
  }
  if (!counts.emptied_labels.empty()) {
    constexpr std::size_t most = 10;
    notice(fmt::format("no readable picture of {}: kept in the file without images",
                       labels_text(counts.emptied_labels, most)));
  }
  notice(fmt::format("{}: {} of {}", output.string(), count_of(counts.images, "image"),
                     count_of(set->label_names().size(), "label")));
}

}  // namespace mylos::tasks
