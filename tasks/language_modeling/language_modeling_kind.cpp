#include "tasks/language_modeling/language_modeling_kind.hpp"

#include "data/huggingface/llama_shapes.hpp"
#include "tasks/interface/pretrained_export.hpp"
#include "tasks/language_modeling/language_modeling_options.hpp"
#include "tasks/language_modeling/language_task.hpp"
#include "tasks/language_modeling/llama_shape_of.hpp"
#include "tasks/language_modeling/planned_documents.hpp"
#include "tasks/language_modeling/prepared_documents.hpp"

#include <array>

namespace mylos::tasks {
namespace {

constexpr std::array<std::string_view, 1> types = {"llama"};

class LanguageModelingKind final : public TaskKind {
 public:
  std::string_view name() const override { return "language-modeling"; }
  std::string_view title() const override { return "language modelling"; }
  DataTexts data_texts() const override {
    constexpr std::string_view files = "documents (.jsonl, .pgn, .txt) or samples.h5";
    return {files, files, "documents"};
  }
  std::span<const std::string_view> model_types() const override { return types; }
  std::vector<std::string> known_models() const override {
    std::vector<std::string> names;
    for (const data::NamedLlama& shape : data::llama_shapes()) names.push_back(shape.name);
    return names;
  }
  bool knows_model(std::string_view name) const override { return data::find_llama_shape(name) != nullptr; }

  void set_defaults(RunConfig& run, unsigned) const override { run.settings = LanguageConfig(); }
  std::vector<Option<RunConfig>> options() const override { return language_modeling_options(); }
  std::vector<Choice> metrics() const override {
    return {{"loss", {"eval_loss"}}, {"perplexity", {}}, {"accuracy", {"eval_accuracy"}}};
  }
  std::vector<std::string_view> settings_of_run(unsigned) const override {
    return {"max-length", "long", "text-field", "no-bos", "no-eos"};
  }
  void fit_model(RunConfig& run, const std::string& name, const OptionSources& sources,
                 const Notice& notice) const override {
    fit_samples(run, name, sources, notice);
  }

  std::unique_ptr<Task> make(const RunConfig& run, const Notice& notice) const override {
    return std::make_unique<LanguageTask>(run, notice);
  }
  std::unique_ptr<nn::Model> network(const std::string& name, Precision precision) const override {
    return nn::make_llama(llama_shape_of(find_llama_sizes(name)), precision);
  }
  std::unique_ptr<train::ModelExport> start_export(const std::filesystem::path& directory, const ParameterTable& table,
                                                   const std::filesystem::path& output) const override {
    const data::PretrainedModel model(directory);
    return std::make_unique<PretrainedExport>(output, data::llama_config_json(data::read_llama_config(model)),
                                              read_tokenizer_files(model), table);
  }
  PlannedRun plan(const std::string& name, const std::filesystem::path& file, const RunConfig& run,
                  const OptionSources& sources, const Notice& notice) const override {
    return plan_documents(name, file, run, sources, notice);
  }

  void prepare(const RunConfig& run, const std::filesystem::path& file, const std::filesystem::path& output,
               const Notice& notice) const override {
    prepare_documents(run, file, output, notice);
  }
  bool is_prepared(const std::filesystem::path& file) const override { return is_prepared_documents(file); }
};

}  // namespace

const TaskKind& language_modeling() {
  static const LanguageModelingKind kind;
  return kind;
}

}  // namespace mylos::tasks
