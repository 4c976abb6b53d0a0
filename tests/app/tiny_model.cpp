#include "tests/app/tiny_model.hpp"
#include "tests/support/written_models.hpp"

#include "data/huggingface/pretrained.hpp"
#include "families/bert/bert_config.hpp"
#include "families/bert/wordpiece_files.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <vector>

namespace mylos::tests {
namespace {

using nlohmann::json;

constexpr const char* embeddings_name = "bert.embeddings.word_embeddings.weight";

std::string vocabulary_text() {
  std::string text = "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n";
  for (const char* prefix : {"", "##"}) {
    for (char c = 'a'; c <= 'z'; ++c) text += fmt::format("{}{}\n", prefix, c);
    for (char c = '0'; c <= '9'; ++c) text += fmt::format("{}{}\n", prefix, c);
  }
  return text + ".\n,\n?\n!\n";  // 81 tokens: with a multiple of 8 the last rows could be padding
}

/// Collects named tensors. References to their values stay valid.
class Tensors {
 public:
  void add_random(const std::string& name, std::vector<std::size_t> shape, float deviation = 0.1f) {
    std::normal_distribution<float> normal(0.0f, deviation);
    for (float& value : take(name, std::move(shape))) value = normal(generator_);
  }
  void add(const std::string& name, std::vector<std::size_t> shape, float value) {
    for (float& each : take(name, std::move(shape))) each = value;
  }
  /// Returns the values of a tensor that was added.
  std::vector<float>& find(const std::string& name) {
    return values_.at(static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin()));
  }
  void add_linear(const std::string& name, std::size_t out, std::size_t in, float deviation = 0.1f) {
    add_random(name + ".weight", {out, in}, deviation);
    add(name + ".bias", {out}, 0.0f);
  }
  void add_norm(const std::string& name, std::size_t hidden) {
    add(name + ".weight", {hidden}, 1.0f);
    add(name + ".bias", {hidden}, 0.0f);
  }
  std::vector<data::NamedTensor> all() const {
    std::vector<data::NamedTensor> tensors;
    for (std::size_t i = 0; i < names_.size(); ++i) tensors.push_back({names_[i], shapes_[i], values_[i]});
    return tensors;
  }

 private:
  std::vector<float>& take(const std::string& name, std::vector<std::size_t> shape) {
    names_.push_back(name);
    values_.emplace_back(std::accumulate(shape.begin(), shape.end(), std::size_t{1}, std::multiplies<>()));
    shapes_.push_back(std::move(shape));
    return values_.back();
  }

  std::mt19937 generator_{1};
  std::vector<std::string> names_;
  std::vector<std::vector<std::size_t>> shapes_;
  std::vector<std::vector<float>> values_;
};

void add_layer(Tensors& tensors, const std::string& name, const TinyModel& model) {
  for (const char* projection : {"query", "key", "value"}) {
    tensors.add_linear(fmt::format("{}.attention.self.{}", name, projection), model.hidden, model.hidden);
  }
  tensors.add_linear(name + ".attention.output.dense", model.hidden, model.hidden);
  tensors.add_norm(name + ".attention.output.LayerNorm", model.hidden);
  tensors.add_linear(name + ".intermediate.dense", model.feed_forward, model.hidden);
  tensors.add_linear(name + ".output.dense", model.hidden, model.feed_forward);
  tensors.add_norm(name + ".output.LayerNorm", model.hidden);
}

json question(const std::string& id, const std::string& context, const std::string& answer) {
  return {{"id", id},
          {"question", fmt::format("what is {}?", id)},
          {"answers", json::array({{{"text", answer}, {"answer_start", context.find(answer)}}})}};
}

}  // namespace

void write_tiny_model(const std::filesystem::path& directory, const TinyModel& model) {
  const std::string vocabulary = vocabulary_text();
  const auto tokens = static_cast<std::size_t>(std::ranges::count(vocabulary, '\n'));
  Tensors tensors;
  tensors.add_random(embeddings_name, {tokens, model.hidden});
  if (model.eight_overflows) {
    const std::size_t before = vocabulary.find("\n8\n") + 1;  // the index of a token is its line
    const auto token = std::ranges::count(vocabulary.substr(0, before), '\n');
    std::fill_n(tensors.find(embeddings_name).begin() + token * static_cast<std::ptrdiff_t>(model.hidden), model.hidden,
                3e38f);
  }
  tensors.add_random("bert.embeddings.position_embeddings.weight", {model.positions, model.hidden});
  tensors.add_random("bert.embeddings.token_type_embeddings.weight", {2, model.hidden});
  tensors.add_norm("bert.embeddings.LayerNorm", model.hidden);
  for (std::size_t i = 0; i < model.layers; ++i) add_layer(tensors, fmt::format("bert.encoder.layer.{}", i), model);
  if (model.has_head) tensors.add_linear("qa_outputs", 2, model.hidden, model.head_scale);
  families::BertShape config{.token_types = 2, .padding_token = 0};
  config.vocabulary = tokens;
  config.hidden = model.hidden;
  config.layers = model.layers;
  config.heads = model.heads;
  config.feed_forward = model.feed_forward;
  config.positions = model.positions;
  const families::WordPieceFiles tokenizer{.vocabulary = vocabulary, .tokenizer_json = "", .options = {}};
  data::write_pretrained(directory, families::bert_config_json(config),
                         families::wordpiece_model_files(tokenizer, config.positions), tensors.all());
}

std::string tiny_questions(const std::string& version) {
  const std::vector<std::vector<std::string>> texts = {{"the red fox runs far.", "red", "fox", "far"},
                                                       {"a job waits in a queue.", "job", "waits", "queue"},
                                                       {"stars burn gas, slowly.", "stars", "gas", "slowly"},
                                                       {"5 nodes and 8 cores.", "5", "nodes", "8"}};
  json paragraphs = json::array();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    json questions = json::array();
    for (std::size_t j = 1; j < texts[i].size(); ++j) {
      questions.push_back(question(fmt::format("q{}{}", i, j), texts[i][0], texts[i][j]));
    }
    paragraphs.push_back({{"context", texts[i][0]}, {"qas", questions}});
  }
  if (version == "v2.0") {
    paragraphs[0]["qas"][0]["answers"] = json::array();
    paragraphs[0]["qas"][0]["is_impossible"] = true;
  }
  const json document = {{"version", version}, {"data", {{{"title", "tiny"}, {"paragraphs", paragraphs}}}}};
  return document.dump();
}

std::string long_questions(std::size_t count, std::size_t length) {
  nlohmann::json paragraphs = nlohmann::json::array();
  for (std::size_t i = 0; i < count; ++i) {
    std::string context;
    while (context.size() < length) context += "abcdefghi ";
    const nlohmann::json answers = {{{"text", "abcdefghi"}, {"answer_start", 0}}};
    const nlohmann::json questions = {{{"id", std::to_string(i)}, {"question", "what?"}, {"answers", answers}}};
    paragraphs.push_back({{"context", context}, {"qas", questions}});
  }
  return nlohmann::json({{"version", "1.1"}, {"data", {{{"title", "long"}, {"paragraphs", paragraphs}}}}}).dump();
}

}  // namespace mylos::tests
