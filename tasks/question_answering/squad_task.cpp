#include "tasks/question_answering/squad_task.hpp"

#include "core/base/error.hpp"
#include "core/base/files/file_reader.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/quantities.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/safetensors.hpp"
#include "data/squad/answer_files.hpp"
#include "families/model_families.hpp"
#include "tasks/interface/order_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace mylos::tasks {
namespace {

constexpr const char* head_name = "qa_outputs";
constexpr const char* head_prefix = "qa_outputs.";

nn::HeadSettings answer_head(const families::TextModel&) { return nn::span_head(head_name); }

/// Packing efficiency is the fraction of max_length that windows use.
std::string data_text(const SquadWindows& windows, std::size_t max_length) {
  const std::size_t tokens = windows.tokens();
  const double fill = 100.0 * static_cast<double>(tokens) / static_cast<double>(windows.count() * max_length);
  return fmt::format("{}, {}, {}, packing efficiency {:.0f} %", count_of(windows.dataset.questions.size(), "question"),
                     count_of(windows.count(), "window"), count_of(tokens, "token"), fill);
}

/// Returns the first window of each question, by question id.
std::unordered_map<std::string_view, std::size_t> first_windows(const SquadWindows& windows) {
  std::unordered_map<std::string_view, std::size_t> first;
  for (std::size_t window = 0; window < windows.count(); ++window) {
    first.emplace(windows.dataset.questions[windows.features.features[window].question].id, window);
  }
  return first;
}

std::size_t find_window(const Json& entry, const std::unordered_map<std::string_view, std::size_t>& first,
                        const SquadWindows& windows, std::string_view line) {
  const JsonLocation location(line);
  as_list(entry, location);
  if (entry.size() != 2) location.fail("a sample is [question id, window index]");
  const std::string id = as_id(entry[0], location);
  const std::size_t window = as_count(entry[1], location);
  const auto found = first.find(id);
  if (found == first.end()) location.fail(fmt::format("the training data has no question \"{}\"", printable(id)));
  const std::size_t sample = found->second + window;
  const auto& features = windows.features.features;
  if (sample >= features.size() || features[sample].question != features[found->second].question) {
    location.fail(fmt::format("question \"{}\" has no window {}", printable(id), window));
  }
  return sample;
}

}  // namespace

TextHead question_answering_head() {
  return {families::BodyOutput::tokens, answer_head, "ForQuestionAnswering", {"QUESTION_ANS", head_name}};
}

SquadTask::SquadTask(const FileReader& files, const RunConfig& run, const Notice& notice)
    : TextTask(
          run, notice,
          LoadedModel(files, run, question_answering_head(), families::read_tokenizer(files, run.task.model), notice),
          squad_config(run).max_length),
      config_(squad_config(run)) {}

void SquadTask::read_data() {
  families::notice_tokenizer_choice(FileReader(), configured_.model, notice_);
  if (!configured_.train.empty()) {
    use_training_data(load(configured_.train, configured_.train_limit, true));
    if (!config_.order.empty()) order_ = read_order(config_.order, *train_);
  }
  if (!configured_.dev.empty()) use_evaluation_data(load(configured_.dev, configured_.dev_limit, false));
}

/// The texts of training questions are left out: batches are made of their tokens.
void SquadTask::write_data(ByteWriter& bytes) const {
  if (train_) {
    bytes.add(train_->dataset.version);
    bytes.add(train_->dataset.questions.size());
    bytes.add(train_->features);
    bytes.add(order_);
  }
  if (evaluation_) bytes.add(evaluation_->windows());
}

void SquadTask::receive_data(ByteReader& bytes) {
  if (!configured_.train.empty()) {
    SquadWindows windows;
    std::size_t questions = 0;
    bytes.read(windows.dataset.version);
    bytes.read(questions);
    windows.dataset.questions.resize(questions);
    bytes.read(windows.features);
    use_training_data(std::move(windows));
    bytes.read(order_);
  }
  if (!configured_.dev.empty()) {
    SquadWindows windows;
    bytes.read(windows);
    use_evaluation_data(std::move(windows));
  }
}

SquadWindows SquadTask::load(const std::filesystem::path& file, std::optional<std::size_t> limit, bool training) const {
  return load_windows(file, tokenizer(), config_, limit, training, notice_);
}

void SquadTask::use_training_data(SquadWindows windows) {
  train_ = std::make_unique<SquadWindows>(std::move(windows));
  batcher_ = std::make_unique<WindowBatcher>(*train_);
  shuffle(train_->count());
}

void SquadTask::use_evaluation_data(SquadWindows windows) {
  evaluation_ = std::make_unique<SquadEvaluation>(std::move(windows), config_);
  ensure(!train_ || evaluation_->labelled_windows() > 0,
         fmt::format("{}: none of its questions has an answer, so no model can be scored; leave out --dev",
                     configured_.dev.string()));
}

void SquadTask::initial_values(const FileReader& files, const train::TensorWriter& write) const {
  const bool other_head = !config_.head.empty();
  const auto is_of_head = [](const std::string& name) { return name.starts_with(head_prefix); };
  const data::WeightReport report =
      loaded_.read_weights(files, is_of_head, [&](const std::string& name, const data::TensorReader& read) {
        if (!other_head || !is_of_head(name)) write(name, read);
      });
  if (!report.missing.empty() && !train_ && !other_head) fail_without_head(report);
  if (!report.ignored.empty()) {
    notice_(fmt::format("{}: {}", configured_.model.string(), data::ignored_line(report, "question answering")));
  }
  if (other_head) return read_head(files, write);
  if (!report.missing.empty() && train_) {
    notice_(fmt::format("{} has no qa_outputs: the head is initialised from Normal(0, {}) with --seed",
                        configured_.model.string(), data::shortest_decimal(loaded_.text().initializer_range)));
  }
}

void SquadTask::fail_without_head(const data::WeightReport& report) const {
  std::vector<std::string> others = report.ignored;
  std::erase_if(others, [&](const std::string& name) { return !loaded_.text().naming.is_other_head(name); });
  fail(fmt::format("{} has no {}{}: it was not fine-tuned for this task; train it first", configured_.model.string(),
                   report.missing.front(),
                   others.empty() ? "" : fmt::format(", but the head of another task ({})", data::listed(others))));
}

void SquadTask::read_weight_headers(const FileReader& files) const {
  TextTask::read_weight_headers(files);
  if (!config_.head.empty()) const data::SafetensorsFile head(files, config_.head);
}

void SquadTask::read_head(const FileReader& files, const train::TensorWriter& write) const {
  const data::SafetensorsFile file(files, config_.head);
  for (const ParameterTensor& row : model().table().tensors()) {
    if (!row.name.starts_with(head_prefix)) continue;
    const data::TensorInfo* tensor = file.find(row.name);
    ensure(tensor != nullptr, fmt::format("{}: no tensor {} in it", config_.head.string(), row.name));
    ensure(tensor->shape == row.shape, fmt::format("{}: {} has shape {}, the model needs {}", config_.head.string(),
                                                   row.name, shape_text(tensor->shape), shape_text(row.shape)));
    write(row.name, [&](std::size_t first, std::span<float> values) { file.read_float(row.name, first, values); });
  }
}

void SquadTask::assemble(std::size_t, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                         Batch& batch) const {
  batcher_->assemble(samples, ids, batch);
}

std::vector<DataChecksum> SquadTask::data_checksums() const {
  std::vector<DataChecksum> checksums;
  if (train_) checksums.push_back({"train", configured_.train, train_->checksum()});
  if (evaluation_) checksums.push_back({"dev", configured_.dev, evaluation_->windows().scored_checksum()});
  if (!order_.empty()) checksums.push_back({"order", config_.order, order_checksum(order_)});
  return checksums;
}

nlohmann::ordered_json SquadTask::resolved() const {
  const bool is_v2 = train_->dataset.version == data::SquadVersion::v2_0;
  return {{"squad", is_v2 ? "2.0" : "1.1"},
          {"dropout", configured_.dropout.value_or(data::shortest_decimal(loaded_.text().dropout))},
          {"attention", to_string(loaded_.text().attention.kernel)}};
}

std::string SquadTask::train_text() const { return data_text(*train_, config_.max_length); }

std::string SquadTask::dev_text() const { return data_text(evaluation_->windows(), config_.max_length); }

EvaluatedSamples SquadTask::evaluated() const { return {evaluation_->windows().count(), "windows"}; }

void SquadTask::write_results(const std::filesystem::path& directory) const { evaluation_->write(directory); }

std::string SquadTask::short_answers() const {
  return data::short_answers_json(evaluation_->windows().dataset.questions, evaluation_->answers());
}

std::vector<std::vector<std::size_t>> read_order(const std::filesystem::path& path, const SquadWindows& windows) {
  const auto first = first_windows(windows);
  return read_order_file(FileReader(), path, "[question id, window index]",
                         [&](const Json& entry, std::string_view line, std::vector<std::size_t>& step) {
                           step.push_back(find_window(entry, first, windows, line));
                         });
}

}  // namespace mylos::tasks
