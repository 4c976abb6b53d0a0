#include "tasks/image_classification/image_task.hpp"

#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/unicode.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/label_names.hpp"
#include "data/images/synthetic_images.hpp"
#include "tasks/image_classification/classifier_model.hpp"
#include "tasks/image_classification/image_labels.hpp"
#include "tasks/interface/order_file.hpp"
#include "tasks/interface/pretrained_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <numeric>
#include <utility>

namespace mylos::tasks {
namespace {

std::vector<std::vector<std::size_t>> read_order(const FileReader& files, const std::filesystem::path& path,
                                                 std::size_t images) {
  return read_order_file(files, path, "image numbers",
                         [&](const Json& entry, std::string_view line, std::vector<std::size_t>& step) {
                           const JsonLocation location(line);
                           const std::size_t image = as_count(entry, location);
                           if (image >= images) location.fail(fmt::format("the training data has no image {}", image));
                           step.push_back(image);
                         });
}

/// Returns whether the data has the same number of labels as `labels`, but no name in common with them.
bool has_other_names(const data::ImageSet& set, const std::vector<std::string>& labels) {
  return set.label_names().size() == labels.size() && std::ranges::none_of(set.label_names(), [&](const auto& name) {
           return std::ranges::find(labels, name) != labels.end();
         });
}

/// Returns a line about a micro-batch that is rounded down to whole groups; empty if it is not, or exceeds the batch.
std::string rounding_text(std::size_t micro_batch, std::size_t batch, std::size_t group) {
  if (micro_batch < group || micro_batch >= batch || micro_batch % group == 0) return {};
  return fmt::format("--micro-batch {}: a micro-batch is a whole number of groups of {} (--batch-norm-group), here {}",
                     micro_batch, count_of(group, "image"), count_of(micro_batch - micro_batch % group, "image"));
}

/// Generates the image requests of a rank's training, from its first expected step on.
class ExpectedImages {
 public:
  ExpectedImages(const GroupStream& stream, const train::ExpectedBatches& expected)
      : stream_(stream), expected_(expected), step_(expected.first_step) {}

  std::optional<data::ImageRequest> next() {
    while (index_ == batches_.size()) {
      if (step_ == expected_.steps) return std::nullopt;
      batches_ = expected_.batches_of(step_++);
      index_ = 0;
    }
    data::ImageRequest request{step_ - 1, {}};
    for (const std::size_t sample : batches_[index_++]) {
      const std::vector<std::size_t> images = stream_.images_of(sample);
      request.images.insert(request.images.end(), images.begin(), images.end());
    }
    return request;
  }

 private:
  GroupStream stream_;  ///< private copy: it caches an epoch's order, and is used by the loader's threads
  train::ExpectedBatches expected_;
  std::size_t step_, index_ = 0;
  std::vector<std::vector<std::size_t>> batches_;  ///< batches of the step before step_
};

/// Returns the rule that replaces damaged images by those that follow in the order of the epoch.
data::Substitute next_images(const GroupStream& stream) {
  struct Shared {
    explicit Shared(const GroupStream& copied) : stream(copied) {}
    GroupStream stream;  // used by the loader's threads
    std::mutex mutex;
  };
  return [shared = std::make_shared<Shared>(stream)](std::uint64_t step, std::uint64_t image, std::size_t tries) {
    const std::lock_guard lock(shared->mutex);
    return std::optional<std::uint64_t>(shared->stream.image_after(step, image, tries));
  };
}

}  // namespace

ImageTask::ImageTask(const FileReader& files, const RunConfig& run, Notice notice)
    : configured_(run.task),
      config_(image_config(run)),
      notice_(std::move(notice)),
      classifier_(read_classifier(files, run.task.model, config_.weights)) {
  choose_stem(files, classifier_, config_.stem);
  open_data(files);
  resolve_labels(files);
  resolve_channels();
  const data::ImageSet* set = train_ ? train_.get() : dev_.get();
  input_ = resolve_input(config_, classifier_.processor, set, classifier_.images->channels,
                         train_ ? PreferredSize::data : PreferredSize::model);
  check_size_for_stem(input_.size, classifier_.images->stem);
  network_ = make_network(classifier_, input_, run.engine.precision, train_ ? config_.label_smoothing : 0.0);
  network_->freeze(run.engine.freeze);
  if (train_) make_stream(files, run);
  if (dev_) {
    evaluation_ = std::make_unique<ImageEvaluation>(std::move(dev_), classifier_.images->labels, dev_labels_, input_,
                                                    config_.loader_threads, config_.skips_damaged);
  }
}

void ImageTask::open_data(const FileReader& files) {
  // Synthetic images have the model's labels.
  const std::size_t labels = config_.labels > 0       ? config_.labels
                             : classifier_.pretrained ? classifier_.images->labels.size()
                                                      : 0;
  if (!configured_.train.empty()) {
    train_ = open_image_data(files, configured_.train, data::ImagePart::training, labels, configured_.train_limit);
  }
  if (!configured_.dev.empty())
    dev_ = open_image_data(files, configured_.dev, data::ImagePart::test, labels, configured_.dev_limit);
  const auto take = [this](data::ImageSet* set, const char* option, const std::filesystem::path& path) {
    if (set == nullptr) return;
    sets_.push_back(set);
    note_passed_over(*set, path, notice_);
    if (data::is_synthetic(path.string())) return;
    notes_.push_back(std::make_unique<PictureNotes>(option, path, *set, config_.loader_threads, config_.skips_damaged));
  };
  take(train_.get(), "train", configured_.train);
  take(dev_.get(), "dev", configured_.dev);
}

std::vector<train::DataNotes*> ImageTask::data_notes() const {
  std::vector<train::DataNotes*> notes;
  for (const auto& each : notes_) notes.push_back(each.get());
  return notes;
}

std::vector<std::string> ImageTask::closing_lines() const {
  std::vector<std::string> lines;
  for (const auto& each : notes_) lines.push_back(each->damage_text());
  std::erase(lines, "");
  return lines;
}

void ImageTask::write_data(ByteWriter& bytes) const {
  for (const data::ImageSet* set : sets_) set->write_arrays(bytes);
}

void ImageTask::receive_data(ByteReader& bytes) {
  for (data::ImageSet* set : sets_) set->read_arrays(bytes);
}

void ImageTask::resolve_labels(const FileReader& files) {
  std::vector<std::string>& labels = classifier_.images->labels;
  const data::ImageSet* set = train_ ? train_.get() : dev_.get();
  const std::string data = train_ ? configured_.train.string() : configured_.dev.string();
  for (const data::ImageSet* each : {train_.get(), dev_.get()}) {
    if (each == nullptr) continue;
    for (const std::string& name : each->label_names())
      ensure_utf8(name, fmt::format("{}: the name of label {}", data, printable(name)));
  }
  const bool has_names = labels != data::unnamed_labels(labels.size());
  if (!classifier_.pretrained || (train_ && !classifier_.has_weights(files) && !has_names)) {
    if (set != nullptr) labels = name_labels(config_.labels, set->label_names(), data);
    if (set == nullptr && config_.labels > 0) labels = data::unnamed_labels(config_.labels);
  } else if (config_.labels > 0 &&
             (config_.labels != labels.size() || (train_ && has_names && has_other_names(*set, labels)))) {
    ensure(train_ != nullptr, fmt::format("--labels {}: {} was made for {}; leave it out", config_.labels,
                                          classifier_.name, count_of(labels.size(), "label")));
    classifier_.new_classifier = true;
    labels = name_labels(config_.labels, set->label_names(), data);
  } else if (train_ && !has_names && labels.size() == set->label_names().size()) {
    labels = set->label_names();
  }
  if (set != nullptr && has_names && has_other_names(*set, labels)) {
    notice_(fmt::format("{}: its labels are matched by number: {} as {}, the first of {}", data,
                        printable(set->label_names().front()), printable(labels.front()), classifier_.name));
  }
  if (train_) {
    const std::vector<std::string>& names = train_->label_names();
    train_labels_ = match_labels(names, configured_.train.string(), labels, classifier_.name,
                                 fmt::format("train with --labels {} to initialise its last layer anew", names.size()));
  }
  if (dev_) {
    const std::vector<std::string>& names = dev_->label_names();
    const bool can_choose = train_ && data::is_synthetic(configured_.train.string());
    dev_labels_ = match_labels(names, configured_.dev.string(), labels, classifier_.name,
                               can_choose ? fmt::format("use --labels {}, or data of the model's labels", names.size())
                                          : std::string(other_data));
  }
}

void ImageTask::resolve_channels() {
  const data::ImageSet* set = train_ ? train_.get() : dev_.get();
  if (!classifier_.pretrained && set != nullptr) classifier_.images->channels = data::channels_of(*set);
}

void ImageTask::make_stream(const FileReader& files, const RunConfig& run) {
  exporter_ =
      image_exporter(*classifier_.images, input_, network_->table(), classifier_precision(files, run, classifier_));
  std::size_t batch = configured_.batch;
  if (!config_.order.empty()) {
    order_ = read_order(files, config_.order, train_->size());
    batch = std::ranges::max_element(order_, {}, &std::vector<std::size_t>::size)->size();
  }
  const std::size_t group = group_size(config_, batch);
  stream_ = config_.order.empty() ? std::make_unique<GroupStream>(train_->size(), batch, group, run.engine.seed,
                                                                  configured_.train_fraction)
                                  : std::make_unique<GroupStream>(order_, group);
  check_groups();
  if (const std::string text = rounding_text(run.engine.micro_batch, batch, group); !text.empty()) notice_(text);
  data::TransformOptions transform = transform_options(input_);
  transform.augmentation = config_.augment;
  data::LoaderOptions options{
      .transform = transform, .seed = run.engine.seed, .threads = config_.loader_threads, .substitute = {}};
  if (config_.skips_damaged) options.substitute = next_images(*stream_);
  batches_ = std::make_unique<ImageBatches>(*train_, train_labels_, input_, options);
  if (classifier_.images->stem == families::ImageStem::cifar) {
    notice_("--stem cifar: only mylos reads the models that it writes; transformers does not have this stem");
  }
}

/// Errors: std::runtime_error if BatchNorm would see a single value per channel, whose gradient is zero.
void ImageTask::check_groups() const {
  if (classifier_.images->last_pixels(format_of(input_)) > 1) return;
  for (std::size_t step = 0; step < stream_->steps_per_epoch(); ++step) {
    for (const std::size_t sample : stream_->global_batch(step)) {
      ensure(stream_->rows_of(sample) > 1,
             fmt::format("step {}: BatchNorm over one image whose last features are 1 x 1 learns nothing; use a larger "
                         "--batch and --batch-norm-group, or a larger --image-size",
                         step + 1));
    }
  }
}

std::size_t ImageTask::loaded_bytes(const BatchShape& largest) const {
  return data::loader_bytes(largest.rows, input_.size * input_.size * data::channels_of(*train_));
}

void ImageTask::initial_values(const FileReader& files, const train::TensorWriter& write) const {
  if (classifier_.has_weights(files)) {
    read_classifier_weights(files, classifier_, network_->table(), train_ != nullptr, write, notice_);
    return;
  }
  ensure(train_ != nullptr,
         fmt::format("{} has no weights; train it first, or give the directory of a model that has", classifier_.name));
  notice_(fmt::format("{} has no weights: the model is initialised with --seed", classifier_.name));
}

void ImageTask::read_weight_headers(const FileReader& files) const {
  if (classifier_.pretrained) classifier_.pretrained->read_weight_headers(files);
}

train::WorkKind ImageTask::work() const { return stream_ ? stream_->work() : GroupStream(1, 1, 1, 0).work(); }

void ImageTask::read_ahead(const train::ExpectedBatches& expected) const {
  const auto images = std::make_shared<ExpectedImages>(*stream_, expected);
  batches_->reader().read_ahead([images](std::uint64_t) { return images->next(); });
}

void ImageTask::assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                         Batch& batch) const {
  std::vector<std::uint64_t> images;
  std::vector<std::size_t> lengths;
  for (const std::size_t sample : samples) {
    const std::vector<std::size_t> group = stream_->images_of(sample);
    lengths.push_back(group.size());
    images.insert(images.end(), group.begin(), group.end());
  }
  batches_->assemble(step, images, lengths, ids, batch);
}

void ImageTask::write_results(const std::filesystem::path& directory) const {
  write_text(directory / "results.json", evaluation_->results());
  write_text(directory / "predictions.jsonl", evaluation_->prediction_lines());
}

std::vector<DataChecksum> ImageTask::data_checksums() const {
  std::vector<DataChecksum> checksums;
  if (train_) checksums.push_back({"train", configured_.train, checksum_of(*train_)});
  if (evaluation_) checksums.push_back({"dev", configured_.dev, checksum_of(evaluation_->set())});
  if (!order_.empty()) checksums.push_back({"order", config_.order, order_checksum(order_)});
  return checksums;
}

nlohmann::ordered_json ImageTask::resolved() const {
  nlohmann::ordered_json chosen = {{"image-size", input_.size},
                                   {"crop-fraction", input_.crop_fraction},
                                   {"warps", input_.warps},
                                   {"resample", to_string(input_.resampling)},
                                   {"mean", data::shortest_decimals(input_.mean)},
                                   {"std", data::shortest_decimals(input_.deviation)},
                                   {"labels", classifier_.images->labels.size()},
                                   {"label-names", classifier_.images->labels},
                                   {"channels", classifier_.images->channels},
                                   {"stem", to_string(classifier_.images->stem)}};
  if (stream_) chosen["batch-norm-group"] = group_size(config_, stream_->largest_batch());
  return chosen;
}

std::string ImageTask::train_text() const {
  const std::size_t largest = stream_->largest_batch();
  return fmt::format("{}, {} x {} pixels, BatchNorm over groups of {}", describe_images(*train_), input_.size,
                     input_.size, group_size(config_, largest));
}

}  // namespace mylos::tasks
