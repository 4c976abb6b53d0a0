#include "tests/small_models/small_kinds.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files.hpp"
#include "core/base/json.hpp"
#include "core/base/option_kinds.hpp"
#include "core/base/quantities.hpp"
#include "tasks/interface/planned_run.hpp"
#include "tasks/interface/task.hpp"
#include "tasks/interface/trained_model.hpp"
#include "tests/small_models/image_task.hpp"
#include "tests/small_models/text_task.hpp"

#include <fmt/format.h>

#include <array>

namespace mylos::small_models {
namespace {

using tasks::RunConfig;

/// Reads a number from a data file.
std::size_t read_count(const std::filesystem::path& file, const char* name) {
  const Json object = read_json(file);
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

/// Exports a model as its task does, and writes config.json.
class NamedExport final : public train::ModelExport {
 public:
  NamedExport(std::unique_ptr<train::ModelExport> model, std::filesystem::path directory, std::string_view type)
      : model_(std::move(model)), directory_(std::move(directory)), type_(type) {}

  void write(const ParameterTensor& row, std::size_t first, std::span<const float> values) override {
    model_->write(row, first, values);
  }
  void commit() override {
    model_->commit();
    write_text(directory_ / "config.json", Json{{"model_type", type_}}.dump() + "\n");
  }

 private:
  std::unique_ptr<train::ModelExport> model_;
  std::filesystem::path directory_;
  std::string_view type_;
};

/// Starts NamedExports.
class NamedExporter final : public train::ModelExporter {
 public:
  NamedExporter(const ParameterTable& table, std::string_view type) : model_(table), type_(type) {}

  std::vector<std::size_t> files() const override { return model_.files(); }
  std::unique_ptr<train::ModelExport> start(const std::filesystem::path& directory,
                                            const train::ExportPart& part) const override {
    return std::make_unique<NamedExport>(model_.start(directory, part), directory, type_);
  }

 private:
  SafetensorsExporter model_;
  std::string_view type_;
};

/// A kind's description of its data that the engine's task does not have.
struct SmallTexts {
  std::string_view model_type;
  std::string model, train, dev;
  tasks::EvaluatedSamples evaluated;
};

/// Adapts a generated task to the interface that commands use.
class SmallTask final : public tasks::Task {
 public:
  SmallTask(std::unique_ptr<GeneratedTask> task, const RunConfig& run, SmallTexts texts)
      : task_(std::move(task)),
        reported_(run.task),
        texts_(std::move(texts)),
        exporter_(task_->model().table(), texts_.model_type) {}

  const nn::Model& model() const override { return task_->model(); }
  void initial_values(const train::TensorWriter& write) const override { task_->initial_values(write); }
  std::size_t steps_per_epoch() const override { return task_->steps_per_epoch(); }
  std::vector<std::size_t> global_batch(std::size_t step) const override { return task_->global_batch(step); }
  train::WorkKind work() const override { return task_->work(); }
  std::size_t rows_of(std::size_t sample) const override { return task_->rows_of(sample); }
  double weight(std::span<const std::size_t> samples) const override { return task_->weight(samples); }
  void assemble(std::size_t step, std::span<const std::size_t> samples, std::span<const std::uint32_t> ids,
                Batch& batch) const override {
    task_->assemble(step, samples, ids, batch);
  }
  train::Evaluation* evaluation() const override { return reported_.dev.empty() ? nullptr : task_->evaluation(); }
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
  std::string model_text() const override { return texts_.model; }
  std::string train_text() const override { return texts_.train; }
  std::string dev_text() const override { return texts_.dev; }
  tasks::EvaluatedSamples evaluated() const override { return texts_.evaluated; }
  std::string results_text() const override {
    nlohmann::ordered_json scores;
    for (const auto& [name, value] : static_cast<GeneratedEvaluation*>(task_->evaluation())->metrics()) {
      scores[name] = value;
    }
    return scores.dump(2) + "\n";
  }

 private:
  static std::uint32_t checksum_of(const std::filesystem::path& file) {
    const std::string text = read_text(file);
    return crc32c(std::as_bytes(std::span(text)));
  }

  std::unique_ptr<GeneratedTask> task_;
  tasks::TaskConfig reported_;
  SmallTexts texts_;
  NamedExporter exporter_;
};

/// The common part of the two kinds.
class SmallKind : public tasks::TaskKind {
 public:
  SmallKind(std::string_view name, std::string_view title, std::span<const std::string_view> model_types,
            std::vector<Option<RunConfig>> (*options)() = nullptr)
      : TaskKind(tasks::TaskTraits{.name = name,
                                   .title = title,
                                   .data_texts = {"a JSON object of counts", "a JSON object of counts", "samples"},
                                   .own_model_types = model_types,
                                   .options = options,
                                   .metrics = {{"loss", {"eval_loss"}}, {"accuracy", {"eval_accuracy"}}}}) {}

  tasks::ExportedModel export_model(const tasks::TrainedModel&) const final {
    tasks::ExportedModel exported{.network = network(), .exporter = nullptr};
    exported.exporter = std::make_unique<NamedExporter>(exported.network->table(), model_types().front());
    return exported;
  }
  tasks::PlannedRun plan(const std::string& model, const std::filesystem::path& file, const RunConfig& run,
                         const OptionSources&, const Notice& notice) const final {
    RunConfig reading = run;
    reading.task.train = file;
    const std::unique_ptr<tasks::Task> task = make(reading, notice);
    tasks::PlannedRun planned{.config = run,
                              .name = model,
                              .model = model,
                              .network = network(),
                              .work = task->work(),
                              .data = task->train_text()};
    const std::size_t samples = read_count(file, counted());
    for (std::size_t i = 0; i < samples; ++i) planned.lengths.push_back(task->rows_of(i));
    return planned;
  }

 protected:
  virtual std::unique_ptr<nn::Model> network() const = 0;
  /// Returns the name of the counted items in a training data file.
  virtual const char* counted() const = 0;
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

constexpr std::array<std::string_view, 1> word_models = {"small_decoder"};

class NextWord final : public SmallKind {
 public:
  NextWord() : SmallKind("next-word", "next words", word_models, word_options) {}

  void set_defaults(RunConfig& run, std::string_view) const override { run.settings = WordSettings(); }
  std::unique_ptr<tasks::Task> make(const RunConfig& run, const Notice&) const override {
    TextTaskConfig config;
    config.shortest = tasks::settings_of<WordSettings>(run).shortest;
    config.batch = run.task.batch;
    config.seed = run.engine.seed;
    config.start = start_of(run);
    if (!run.task.train.empty()) config.sentences = read_count(run.task.train, "sentences");
    if (!run.task.dev.empty()) config.evaluation_sentences = read_count(run.task.dev, "sentences");
    SmallTexts texts{.model_type = model_types().front(),
                     .model = count_of(config.shape.layers, "layer"),
                     .train = count_of(config.sentences, "sentence"),
                     .dev = count_of(config.evaluation_sentences, "sentence"),
                     .evaluated = {config.evaluation_sentences, "sentences"}};
    return std::make_unique<SmallTask>(std::make_unique<TextTask>(config), run, std::move(texts));
  }

 protected:
  std::unique_ptr<nn::Model> network() const override { return make_causal_decoder(TextTaskConfig().shape, 0); }
  const char* counted() const override { return "sentences"; }
};

constexpr std::array<std::string_view, 1> line_models = {"small_classifier"};

class LineClass final : public SmallKind {
 public:
  LineClass() : SmallKind("line-class", "classes of lines", line_models) {}

  void set_defaults(RunConfig& run, std::string_view) const override {
    run.task.batch = 6;
    run.engine.optimizer.kind = train::OptimizerKind::sgd;
    run.engine.learning_rate = 0.05;
    run.settings = 0;
  }

  std::unique_ptr<tasks::Task> make(const RunConfig& run, const Notice&) const override {
    ImageTaskConfig config;
    config.groups_per_batch = run.task.batch;
    config.seed = run.engine.seed;
    config.start = start_of(run);
    if (!run.task.train.empty()) config.groups = read_count(run.task.train, "groups");
    if (!run.task.dev.empty()) config.evaluation_images = read_count(run.task.dev, "images");
    if (run.task.train.empty() && !run.task.dev.empty()) config.groups = read_count(run.task.dev, "after");
    SmallTexts texts{.model_type = model_types().front(),
                     .model = count_of(config.shape.classes, "kind") + " of lines",
                     .train = count_of(config.groups * config.images_per_group, "image"),
                     .dev = count_of(config.evaluation_images, "image"),
                     .evaluated = {config.evaluation_images, "images"}};
    return std::make_unique<SmallTask>(std::make_unique<ImageTask>(config), run, std::move(texts));
  }

 protected:
  std::unique_ptr<nn::Model> network() const override { return make_convolution_classifier(ImageTaskConfig().shape); }
  const char* counted() const override { return "groups"; }
};

}  // namespace

const tasks::TaskKind& next_word() {
  static const NextWord kind;
  return kind;
}

const tasks::TaskKind& line_class() {
  static const LineClass kind;
  return kind;
}

}  // namespace mylos::small_models
