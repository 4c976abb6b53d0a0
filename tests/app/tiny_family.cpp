#include "tests/app/tiny_family.hpp"

#include "tests/app/tiny_model.hpp"
#include "tests/app/tiny_run.hpp"
#include "tests/data/images/small_images.hpp"
#include "tests/support/temporary.hpp"
#include "tests/tasks/image_classification/small_classifier.hpp"

#include <nlohmann/json.hpp>

#include <sstream>
#include <utility>

namespace mylos::tests {

void write_tiny_llama(const std::filesystem::path& directory, const TinyLlama& model) {
  const nlohmann::json config = {{"model_type", "llama"},
                                 {"vocab_size", model.vocabulary},
                                 {"hidden_size", model.hidden},
                                 {"intermediate_size", model.feed_forward},
                                 {"num_hidden_layers", model.layers},
                                 {"num_attention_heads", model.heads},
                                 {"num_key_value_heads", model.key_value_heads},
                                 {"max_position_embeddings", model.positions},
                                 {"rms_norm_eps", 1e-5},
                                 {"bos_token_id", 1},
                                 {"eos_token_id", 2}};
  write_file(directory / "config.json", config.dump());
}

std::string tiny_documents(std::size_t count, std::size_t length) {
  std::string lines;
  for (std::size_t i = 0; i < count; ++i) {
    nlohmann::json ids = nlohmann::json::array();
    for (std::size_t j = 0; j < (length > 0 ? length : 4 + i % 7); ++j) ids.push_back(3 + (5 * i + j) % 26);
    lines += nlohmann::json{{"input_ids", ids}}.dump() + "\n";
  }
  return lines;
}

std::vector<nlohmann::json> metrics_of(const std::filesystem::path& run, const std::string& key) {
  std::vector<nlohmann::json> rows;
  std::istringstream lines(read_file(run / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json row = nlohmann::json::parse(line);
    if (key.empty() || row.contains(key)) rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<nlohmann::json> records_of(const std::filesystem::path& run, const std::string& kind) {
  std::vector<nlohmann::json> rows = metrics_of(run, "kind");
  std::erase_if(rows, [&](const nlohmann::json& row) { return row["kind"] != kind; });
  return rows;
}

std::vector<double> values_of(const std::filesystem::path& run, const std::string& key) {
  std::vector<double> values;
  for (const nlohmann::json& row : metrics_of(run, key)) values.push_back(row[key]);
  return values;
}

const Family& bert_family() {
  static const Family family{
      .name = "bert",
      .ending = ".json",
      .options = {"--max-length", "60", "--doc-stride", "20"},
      .noise = {"--dropout", "0.1"},
      .metric = "f1",
      .title = "F1",
      .work = "tokens",
      .samples = "sequences",
      .recomputation = "attention",
      .drifts = false,
      .write_model = [](const std::filesystem::path& model) { write_tiny_model(model); },
      .write_data = [](const std::filesystem::path& path) { write_file(path, tiny_questions()); }};
  return family;
}

const Family& llama_family() {
  static const Family family{
      .name = "llama",
      .ending = ".jsonl",
      .options = {"--max-length", "32"},
      .noise = {},
      .metric = "accuracy",
      .title = "Accuracy",
      .work = "tokens",
      .samples = "sequences",
      .recomputation = "attention",
      .drifts = false,
      .write_model = [](const std::filesystem::path& model) { write_tiny_llama(model); },
      .write_data = [](const std::filesystem::path& path) { write_file(path, tiny_documents(12)); }};
  return family;
}

const Family& resnet_family() {
  static const Family family{.name = "resnet",
                             .ending = "",
                             .options = {"--batch-norm-group", "1"},
                             .noise = {"--augment", "crop-flip"},
                             .metric = "accuracy",
                             .title = "Accuracy",
                             .work = "images",
                             .samples = "groups",
                             .recomputation = "layer",
                             .drifts = true,
                             .write_model = [](const std::filesystem::path& model) { write_small_classifier(model); },
                             .write_data = [](const std::filesystem::path& path) { write_small_digits(path, 12, 12); }};
  return family;
}

}  // namespace mylos::tests
