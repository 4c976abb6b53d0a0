#include "tasks/question_answering/squad_windows.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/hdf5_file.hpp"
#include "core/base/text/quantities.hpp"
#include "data/squad/feature_file.hpp"
#include "nn/head.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace mylos::tasks {

namespace names = nn::names;

void repair_answers(data::SquadDataset& dataset, const std::string& file, bool prepared, const Notice& notice) {
  const std::size_t count = data::repair_offsets(dataset);
  if (count == 0) return;
  ensure(!prepared, fmt::format("{}: {} are one or two characters off; prepare the file again, with --repair-offsets",
                                file, count_of(count, "answer")));
  notice(fmt::format("{}: moved {} by one or two characters to their text", file, count_of(count, "answer")));
}

void check_answers(const data::SquadDataset& dataset, const std::string& file, bool strict, const Notice& notice) {
  const data::MisplacedAnswers misplaced = data::find_misplaced_answers(dataset);
  if (misplaced.count == 0) return;
  const std::string line =
      fmt::format("{}: {} answers do not match their context; the first: {}", file, misplaced.count, misplaced.first);
  ensure(!strict, line + "; correct it, or leave out --strict to train on the rest");
  notice(line + "; they are left out of training");
}

data::FeatureOptions feature_options(const SquadConfig& config, bool training) {
  return {.max_length = config.max_length,
          .doc_stride = config.doc_stride,
          .exact_labels = config.exact_labels,
          .training = training,
          .answerable_only = config.answerable_only,
          .truncate = config.truncate};
}

namespace {

/// Reads the windows of a feature file. Errors: it was made for another tokenizer or other options.
SquadWindows prepared_windows(const std::filesystem::path& path, const data::Tokenizer& tokenizer,
                              const data::FeatureOptions& options) {
  data::PreparedFeatures prepared = data::read_feature_file(path);
  data::check_prepared_for(prepared, path, tokenizer.identity(), options);
  return {std::move(prepared.dataset), std::move(prepared.features)};
}

void say_labels(const data::FeatureSet& features, const std::string& file, const Notice& notice) {
  if (features.sep_labels == 0) return;
  notice(
      fmt::format("{}: {} answers begin in the last token of a window and are labelled one token further, as run_qa "
                  "does; --exact-labels labels them where they begin",
                  file, features.sep_labels));
}

void say_unanswerable(const data::SquadDataset& dataset, const std::string& file, const Notice& notice) {
  const auto is_unanswerable = [](const data::SquadQuestion& question) { return question.answers.empty(); };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(dataset.questions, is_unanswerable));
  if (count > 0) notice(fmt::format("{}: training leaves out {} without an answer", file, count_of(count, "question")));
}

}  // namespace

SquadWindows cut_windows(data::SquadDataset dataset, const data::Tokenizer& tokenizer, const SquadConfig& config,
                         bool training) {
  data::FeatureSet features = data::build_features(dataset, tokenizer, feature_options(config, training));
  return {std::move(dataset), std::move(features)};
}

SquadWindows load_windows(const std::filesystem::path& path, const data::Tokenizer& tokenizer,
                          const SquadConfig& config, std::optional<std::size_t> limit, bool training,
                          const Notice& notice) {
  const std::string file = path.string();
  const bool prepared = is_hdf5_file(path);
  SquadWindows windows;
  if (prepared) {
    windows = prepared_windows(path, tokenizer, feature_options(config, training));
  } else {
    windows.dataset = data::read_squad(path);
  }
  if (config.squad) windows.dataset.version = data::parse_squad_version(*config.squad);
  if (limit) data::limit_questions(windows.dataset, *limit);
  if (training && config.repair_offsets) repair_answers(windows.dataset, file, prepared, notice);
  if (training) check_answers(windows.dataset, file, config.strict, notice);
  const data::FeatureOptions options = feature_options(config, training);
  windows.features = prepared ? data::select_features(windows.dataset, std::move(windows.features), options)
                              : data::build_features(windows.dataset, tokenizer, options);
  ensure(windows.count() > 0, fmt::format("{}: contains no questions to {}", file, training ? "train on" : "answer"));
  if (training && config.answerable_only) say_unanswerable(windows.dataset, file, notice);
  if (training && !config.exact_labels) say_labels(windows.features, file, notice);
  return windows;
}

std::vector<std::size_t> SquadWindows::lengths() const {
  std::vector<std::size_t> lengths(count());
  for (std::size_t window = 0; window < count(); ++window) lengths[window] = length(window);
  return lengths;
}

std::size_t SquadWindows::tokens() const {
  std::size_t sum = 0;
  for (std::size_t window = 0; window < count(); ++window) sum += length(window);
  return sum;
}

namespace {

/// CRC of a stream of values added piece by piece. Each piece begins with the CRC so far. A CRC of the pieces' CRCs
/// would miss edits: CRCs are linear, and the same edit in two overlapping windows can cancel.
class StreamChecksum {
 public:
  void add(std::int32_t value) { piece_.push_back(value); }
  void add(const std::string& text) {
    add(static_cast<std::int32_t>(text.size()));
    for (const char byte : text) add(static_cast<std::int32_t>(static_cast<unsigned char>(byte)));
  }
  void add(const data::FeatureSet& features, const data::Feature& window) {
    add(static_cast<std::int32_t>(features.length(window)));
    add(window.start);
    add(window.end);
    features.append_input_ids(window, piece_);
  }
  void end_piece() {
    value_ = crc32c(std::as_bytes(std::span(piece_)));
    piece_ = {static_cast<std::int32_t>(value_)};
  }
  std::uint32_t value() const { return value_; }

 private:
  std::vector<std::int32_t> piece_ = {0};
  std::uint32_t value_ = 0;
};

}  // namespace

std::uint32_t SquadWindows::checksum() const {
  StreamChecksum stream;
  for (const data::Feature& feature : features.features) {
    stream.add(features, feature);
    stream.end_piece();
  }
  return stream.value();
}

std::uint32_t SquadWindows::scored_checksum() const {
  StreamChecksum stream;
  stream.add(static_cast<std::int32_t>(checksum()));
  stream.add(static_cast<std::int32_t>(dataset.version));
  for (const data::SquadQuestion& question : dataset.questions) {
    stream.add(question.id);
    stream.add(dataset.contexts[question.context]);
    stream.add((question.has_answers_key ? 1 : 0) + (question.impossible ? 2 : 0));
    stream.add(static_cast<std::int32_t>(question.answers.size()));
    for (const data::SquadAnswer& answer : question.answers) stream.add(answer.text);
    stream.end_piece();
  }
  return stream.value();
}

void WindowBatcher::assemble(std::span<const std::size_t> windows, std::span<const std::uint32_t> ids,
                             Batch& batch) const {
  lengths_.clear();
  for (std::vector<std::int32_t>* values : {&tokens_, &segments_, &starts_, &ends_}) values->clear();
  for (const std::size_t window : windows) append(windows_.features.features[window]);
  batch.reset(lengths_, ids);
  batch.set_indices(names::tokens, tokens_);
  batch.set_indices(names::segments, segments_);
  batch.group_positions();
  batch.set(names::start_labels, std::span<const std::int32_t>(starts_));
  batch.set(names::end_labels, std::span<const std::int32_t>(ends_));
}

void WindowBatcher::append(const data::Feature& feature) const {
  const std::size_t length = windows_.features.length(feature), begin = tokens_.size();
  lengths_.push_back(length);
  windows_.features.append_input_ids(feature, tokens_);
  segments_.resize(begin + windows_.features.context_position(feature), 0);
  segments_.resize(begin + length, windows_.features.layout.second_type);
  starts_.push_back(feature.start);
  ends_.push_back(feature.end);
}

}  // namespace mylos::tasks
