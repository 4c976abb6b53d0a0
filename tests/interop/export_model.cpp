// Reads a Hugging Face model directory and writes it again, as `train` does without the training.
//   export_model SOURCE TARGET

#include <exception>
#include <iostream>
#include <vector>

#include "data/huggingface/pretrained.hpp"
#include "data/huggingface/weight_files.hpp"
#include "families/bert/bert_config.hpp"
#include "families/bert/wordpiece_files.hpp"
#include "tests/support/written_models.hpp"

namespace {

using mylos::FileReader;
using namespace mylos::data;
using namespace mylos::families;

/// Returns every tensor of the source that belongs to a BERT for question answering, under its current name.
std::vector<TensorSpec> tensors_of(const std::filesystem::path& directory) {
  std::vector<TensorSpec> specs;
  const WeightFiles files(FileReader(), directory, canonical_bert_name);
  for (const auto& [name, entry] : files.entries()) {
    const bool is_used =
        name.starts_with("bert.embeddings.") || name.starts_with("bert.encoder.") || name.starts_with("qa_outputs.");
    if (is_used && !name.ends_with("position_ids")) specs.push_back({name, entry.tensor->shape});
  }
  return specs;
}

void export_model(const std::filesystem::path& source, const std::filesystem::path& target) {
  const PretrainedModel model(FileReader(), source);
  const BertShape config = read_bert_config(model);
  const WordPieceFiles tokenizer = read_wordpiece_files(FileReader(), source);
  const auto specs = tensors_of(source);
  std::vector<std::vector<float>> values(specs.size());
  const auto report =
      model.read_weights(FileReader(), specs, bert_tensor_naming(), [&](std::size_t row, const TensorReader& read) {
        values[row].resize(element_count(specs[row].shape, specs[row].name));
        read(0, values[row]);
      });
  if (!report.ignored.empty()) std::cerr << ignored_line(report, "question answering") << '\n';
  std::vector<NamedTensor> weights;
  for (std::size_t row = 0; row < specs.size(); ++row)
    weights.push_back({specs[row].name, specs[row].shape, values[row]});
  write_pretrained(target, bert_config_json(config), wordpiece_model_files(tokenizer, config.positions), weights);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: export_model SOURCE TARGET\n";
    return 2;
  }
  try {
    export_model(argv[1], argv[2]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 1;
  }
}
