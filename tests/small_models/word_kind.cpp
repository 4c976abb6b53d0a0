#include "tests/small_models/word_kind.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/options/option_kinds.hpp"
#include "core/base/text/quantities.hpp"
#include "tasks/interface/planned_run.hpp"
#include "tasks/interface/task.hpp"
#include "tasks/interface/trained_model.hpp"
#include "tests/small_models/forwarded_task.hpp"
#include "tests/small_models/text_task.hpp"
#include "tests/small_models/word_network.hpp"

#include <fmt/format.h>

#include <array>

namespace mylos::small_models {
namespace {

using tasks::RunConfig;

/// Reads a number from a data file.
std::size_t read_count(const FileReader& files, const std::filesystem::path& file, const char* name) {
  const Json object = read_json(files, file);
  ensure(object.is_object() && object.contains(name) && object[name].is_number_unsigned(),
         fmt::format("{}: {}: expected a whole number", file.string(), name));
  return object[name].get<std::size_t>();
}

/// Returns the location of an exported model. A directory without weights starts from the initialisers.
std::filesystem::path start_of(const RunConfig& run) {
  std::error_code unreadable;
  return std::filesystem::exists(run.task.model / "model.safetensors", unreadable) ? run.task.model
                                                                                   : std::filesystem::path();
}

constexpr std::array<std::string_view, 1> model_types = {"word_pairs"};

/// Exports a model as its task does, and writes config.json.
class WordExport final : public train::ModelExport {
 public:
  WordExport(std::unique_ptr<train::ModelExport> model, std::filesystem::path directory)
      : model_(std::move(model)), directory_(std::move(directory)) {}

  void write(const ParameterTensor& row, std::size_t first, std::span<const float> values) override {
    model_->write(row, first, values);
  }
  void commit() override {
    model_->commit();
    write_text(directory_ / "config.json", Json{{"model_type", model_types.front()}}.dump() + "\n");
  }

 private:
  std::unique_ptr<train::ModelExport> model_;
  std::filesystem::path directory_;
};

/// Starts WordExports.
class WordExporter final : public train::ModelExporter {
 public:
  explicit WordExporter(const ParameterTable& table) : model_(table) {}

  std::vector<std::size_t> files() const override { return model_.files(); }
  std::unique_ptr<train::ModelExport> start(const std::filesystem::path& directory,
                                            const train::ExportPart& part) const override {
    return std::make_unique<WordExport>(model_.start(directory, part), directory);
  }

 private:
  SafetensorsExporter model_;
};

/// Adds to the engine's task what commands print about it.
class WordTask final : public ForwardedTask<tasks::Task> {
 public:
  WordTask(std::unique_ptr<TextTask> task, const RunConfig& run, const TextTaskConfig& config)
      : ForwardedTask(*task),
        text_(std::move(task)),
        reported_(run.task),
        config_(config),
        exporter_(text_->model().table()) {}

  train::WorkKind work() const override {
    return {.name = "words", .singular = "word", .samples = "sentences", .sample = "sentence"};
  }
  train::Evaluation* evaluation() const override { return reported_.dev.empty() ? nullptr : text_->evaluation(); }
  void write_results(const std::filesystem::path& directory) const override {
    write_text(directory / "results.json", results_text());
  }
  const train::ModelExporter* exporter() const override { return &exporter_; }

  std::vector<tasks::DataChecksum> data_checksums() const override {
    std::vector<tasks::DataChecksum> checksums;
    if (!reported_.train.empty()) checksums.push_back({"train", reported_.train, checksum_of(reported_.train)});
    if (!reported_.dev.empty()) checksums.push_back({"dev", reported_.dev, checksum_of(reported_.dev)});
    return checksums;
  }
  nlohmann::ordered_json resolved() const override { return {{"generated", true}}; }
  std::string model_text() const override { return count_of(vocabulary, "word"); }
  std::string train_text() const override { return count_of(config_.sentences, "sentence"); }
  std::string dev_text() const override { return count_of(config_.evaluation_sentences, "sentence"); }
  tasks::EvaluatedSamples evaluated() const override { return {config_.evaluation_sentences, "sentences"}; }
  std::string results_text() const override { return text_->scores(); }

 private:
  static std::uint32_t checksum_of(const std::filesystem::path& file) {
    const std::string text = read_text(file);
    return crc32c(std::as_bytes(std::span(text)));
  }

  std::unique_ptr<TextTask> text_;
  tasks::TaskConfig reported_;
  TextTaskConfig config_;
  WordExporter exporter_;
};

/// The settings of next-word.
struct WordSettings {
  std::size_t shortest = 4;
};

std::vector<Option<RunConfig>> word_options() {
  const auto shortest = count_option(
      named_option<WordSettings>("shortest", "N", "Sentences", "train eval", "words of a sentence at least"), {2, 8},
      [](auto& settings) -> auto& { return settings.shortest; });
  std::vector<Option<RunConfig>> all;
  tasks::append_options<WordSettings>(all, {shortest});
  return all;
}

class NextWord final : public tasks::TaskKind {
 public:
  NextWord()
      : TaskKind(tasks::TaskTraits{.name = "next-word",
                                   .title = "next words",
                                   .data_texts = {"a JSON object of counts", "a JSON object of counts", "sentences"},
                                   .own_model_types = small_models::model_types,
                                   .options = word_options,
                                   .metrics = {{"loss", {"eval_loss"}}, {"accuracy", {"eval_accuracy"}}}}) {}

  void set_defaults(RunConfig& run, std::string_view) const override {
    run.task.batch = 16;
    run.engine.learning_rate = 0.01;
    run.settings = WordSettings();
  }
  std::unique_ptr<tasks::Task> make(const FileReader& files, const RunConfig& run, const Notice&) const override {
    TextTaskConfig config{.shortest = tasks::settings_of<WordSettings>(run).shortest,
                          .batch = run.task.batch,
                          .seed = run.engine.seed,
                          .start = start_of(run)};
    if (!run.task.dev.empty()) {
      config.evaluation_sentences = read_count(files, run.task.dev, "sentences");
      config.sentences = read_count(files, run.task.dev, "after");
    }
    if (!run.task.train.empty()) config.sentences = read_count(files, run.task.train, "sentences");
    return std::make_unique<WordTask>(std::make_unique<TextTask>(config, make_word_network()), run, config);
  }
  tasks::ExportedModel export_model(const tasks::TrainedModel&) const override {
    tasks::ExportedModel exported{.network = make_word_network(), .exporter = nullptr};
    exported.exporter = std::make_unique<WordExporter>(exported.network->table());
    return exported;
  }
  tasks::PlannedRun plan(const std::string& model, const std::filesystem::path& file, const RunConfig& run,
                         const OptionSources&, const Notice& notice) const override {
    RunConfig reading = run;
    reading.task.train = file;
    const std::unique_ptr<tasks::Task> task = make(FileReader(), reading, notice);
    tasks::PlannedRun planned{.config = run,
                              .name = model,
                              .model = model,
                              .network = make_word_network(),
                              .work = task->work(),
                              .data = task->train_text()};
    const std::size_t sentences = read_count(FileReader(), file, "sentences");
    for (std::size_t i = 0; i < sentences; ++i) planned.lengths.push_back(task->rows_of(i));
    return planned;
  }
};

}  // namespace

const tasks::TaskKind& next_word() {
  static const NextWord kind;
  return kind;
}

}  // namespace mylos::small_models
