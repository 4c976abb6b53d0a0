// Results of Mylos for a Llama's directory, for comparisons with transformers:
//   llama_directory logits MODEL DOCUMENT OUTPUT           the logits (T, V) of one document of ids, as safetensors
//   llama_directory copy MODEL DOCUMENT TARGET TYPE BYTES  the model written again, in files of at most BYTES
// DOCUMENT is JSON lines with one object: {"input_ids": [...]}.

#include "core/arena.hpp"
#include "core/kernels/products/gemm.hpp"
#include "families/llama/llama_config.hpp"
#include "tasks/interface/pretrained_export.hpp"
#include "tasks/language_modeling/language_config.hpp"
#include "tasks/language_modeling/language_task.hpp"
#include "tests/families/llama/llama_logits.hpp"
#include "tests/support/arrays.hpp"
#include "tests/support/written_models.hpp"
#include "train/engine/models/initial_parameters.hpp"
#include "train/engine/models/model_export.hpp"

#include <Kokkos_Core.hpp>

#include <iostream>
#include <string>

namespace {

using namespace mylos;

tasks::RunConfig run_on(const std::string& model, const std::string& document) {
  tasks::RunConfig run;
  run.task.model = model;
  run.task.dev = document;
  run.settings = tasks::LanguageConfig{.max_length = 64, .no_bos = true, .no_eos = true};
  return run;
}

/// The model of a directory with its weights, loaded as for evaluation.
struct LoadedLlama {
  LoadedLlama(const std::string& directory, const std::string& document)
      : task(FileReader(), run_on(directory, document), [](const std::string&) {}),
        model(tests::make_llama_logits(families::read_llama_config(data::PretrainedModel(FileReader(), directory)),
                                       Precision::float32)),
        store(model->table(), Precision::float32, ParameterStore::Purpose::inference),
        strategy(parallel::make_single_process_strategy(store)) {
    task.read_data();
    train::load_initial_parameters(space, task, std::nullopt, store, *strategy);
  }

  tasks::LanguageTask task;
  std::unique_ptr<nn::Model> model;
  ExecutionSpace space;
  ParameterStore store;
  std::unique_ptr<parallel::ShardingStrategy> strategy;
};

void write_logits(LoadedLlama& loaded, const std::string& output) {
  train::Evaluation& evaluation = *loaded.task.evaluation();
  Arena measured;
  loaded.model->plan(measured, evaluation.largest_batch(), ParameterStore::Purpose::inference, nn::Recompute::none);
  Arena arena("mylos::test::arena", measured.peak());
  Batch batch;
  evaluation.assemble(0, batch);
  const Gemm gemm(default_gemm_provider());
  const tests::Values logits = tests::host_values(
      loaded.model->predict({loaded.space, gemm, loaded.store, loaded.strategy->hooks(), arena, 0, 0}, batch, {}));
  const std::size_t rows = batch.shape().rows;
  const std::vector<float> values(logits.begin(), logits.end());
  data::write_safetensors(output, std::vector<data::NamedTensor>{{"logits", {rows, values.size() / rows}, values}});
}

Precision type_called(const std::string& name) {
  if (const auto type = parse_precision(name)) return *type;
  throw std::runtime_error(name + " is no type");
}

void write_copy(LoadedLlama& loaded, const std::string& source, const std::string& target,
                const data::WeightFormat& format) {
  const OrderedJson config =
      families::llama_config_json(families::read_llama_config(data::PretrainedModel(FileReader(), source)));
  const tasks::PretrainedExporter exporter(config, {}, tasks::weight_tensors(loaded.model->table()), format);
  const auto alone = parallel::make_self_communicator();
  const std::vector<train::WrittenTensors> all = train::divide_export(exporter.files(), std::vector<std::size_t>{0});
  const auto gather = [&](const train::TensorSink& take) {
    train::gather_tensors(*alone, loaded.store, *loaded.strategy, all, take);
  };
  train::export_model(exporter, gather, target);
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 4 && words[0] == "logits") {
    LoadedLlama loaded(words[1], words[2]);
    write_logits(loaded, words[3]);
    return 0;
  }
  if (words.size() == 6 && words[0] == "copy") {
    LoadedLlama loaded(words[1], words[2]);
    write_copy(loaded, words[1], words[3], {.precision = type_called(words[4]), .shard_bytes = std::stoull(words[5])});
    return 0;
  }
  std::cerr << "usage: llama_directory logits MODEL DOCUMENT OUTPUT | copy MODEL DOCUMENT TARGET TYPE BYTES\n";
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const Kokkos::ScopeGuard kokkos;
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
