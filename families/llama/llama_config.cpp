#include "families/llama/llama_config.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "data/huggingface/config_reader.hpp"
#include "data/huggingface/pretrained.hpp"

namespace mylos::families {
namespace {

// Upper limits, above any Llama. A file beyond them is damaged and would request more memory than any machine has.
constexpr std::size_t most_llama_tokens = std::size_t{1} << 24;
constexpr std::size_t widest_llama = std::size_t{1} << 17;
constexpr std::size_t deepest_llama = 1024;
constexpr std::size_t longest_llama = std::size_t{1} << 24;
/// The limit of the kernel for rotary embeddings (largest_rotary_head).
constexpr std::size_t largest_llama_head = 256;
constexpr double largest_theta = 1e12, largest_factor = 1e6;

constexpr const char* model_title = "a Llama";

RopeScaling::Type read_rope_type(const data::ConfigReader& rope) {
  const auto* type = rope.find("rope_type");
  const char* const key = type == nullptr ? "type" : "rope_type";  // its former name
  if (type == nullptr) type = rope.find(key);
  if (type == nullptr || *type == "default") return RopeScaling::Type::none;
  if (*type == "linear") return RopeScaling::Type::linear;
  if (*type == "llama3") return RopeScaling::Type::llama3;
  fail(fmt::format("{}: {} = {} is not supported; only \"default\", \"linear\" and \"llama3\" are", rope.file(), key,
                   data::json_value_text(*type)));
}

void require_key(const data::ConfigReader& rope, const char* key, const char* type) {
  if (rope.find(key) != nullptr) return;
  fail(fmt::format("{}: no \"{}\"; rotary embeddings of type \"{}\" need it", rope.file(), key, type));
}

/// Reads rope_scaling or rope_parameters.
RopeScaling read_scaling(const data::ConfigReader& rope) {
  RopeScaling scaling{.type = read_rope_type(rope)};
  double turned = 1.0;
  rope.read_number("partial_rotary_factor", true, 2.0, turned);
  ensure(turned == 1.0, fmt::format("{}: partial_rotary_factor = {} is not supported; only 1 is", rope.file(), turned));
  if (scaling.type == RopeScaling::Type::none) return scaling;
  const bool is_llama3 = scaling.type == RopeScaling::Type::llama3;
  require_key(rope, "factor", is_llama3 ? "llama3" : "linear");
  rope.read_number("factor", true, largest_factor, scaling.factor);
  if (!is_llama3) return scaling;
  for (const char* key : {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    require_key(rope, key, "llama3");
  }
  rope.read_number("low_freq_factor", true, largest_factor, scaling.low_freq_factor);
  rope.read_number("high_freq_factor", true, largest_factor, scaling.high_freq_factor);
  rope.read_size("original_max_position_embeddings", 1, longest_llama, scaling.original_max_position_embeddings, true);
  ensure(scaling.low_freq_factor < scaling.high_freq_factor,
         fmt::format("{}: low_freq_factor = {} is not below high_freq_factor = {}", rope.file(),
                     scaling.low_freq_factor, scaling.high_freq_factor));
  return scaling;
}

/// Reads rope_theta and the scaling, both at the top level and in rope_parameters, as transformers 5 writes them.
void read_rope(const data::ConfigReader& reader, LlamaConfig& config) {
  reader.read_number("rope_theta", true, largest_theta, config.rope_theta);
  const auto* old = reader.find("rope_scaling");
  if (old != nullptr) config.rope_scaling = read_scaling({*old, reader.file() + ": rope_scaling", model_title});
  const auto* parameters = reader.find("rope_parameters");
  if (parameters == nullptr) return;
  const data::ConfigReader rope(*parameters, reader.file() + ": rope_parameters", model_title);
  double theta = config.rope_theta;
  rope.read_number("rope_theta", true, largest_theta, theta);
  ensure(reader.find("rope_theta") == nullptr || theta == config.rope_theta,
         fmt::format("{}: rope_theta = {}, but {} in rope_parameters", reader.file(), config.rope_theta, theta));
  const RopeScaling scaling = read_scaling(rope);
  ensure(old == nullptr || scaling == config.rope_scaling,
         fmt::format("{}: rope_scaling and rope_parameters contradict each other; remove one", reader.file()));
  config.rope_theta = theta;
  config.rope_scaling = scaling;
}

void read_tokens(const data::ConfigReader& reader, LlamaConfig& config) {
  const std::size_t last = config.vocab_size - 1;
  const auto read = [&](const char* key, std::optional<std::size_t>& id) {
    if (reader.is_null(key)) id.reset();
    if (reader.find(key) == nullptr) return;
    reader.read_size(key, 0, last, id.emplace(), true);
  };
  read("bos_token_id", config.bos_token_id);
  read("pad_token_id", config.pad_token_id);
  const auto* ends = reader.find("eos_token_id");
  if (ends == nullptr || !ends->is_array()) {
    std::optional<std::size_t> end = 2;
    read("eos_token_id", end);
    config.eos_token_ids.clear();
    if (end) config.eos_token_ids = {*end};
    return;
  }
  config.eos_token_ids.clear();
  for (const Json& one : *ends) {
    if (!one.is_number_unsigned() || one.get<std::size_t>() > last) {
      fail(fmt::format("{}: eos_token_id = {}: expected whole numbers from 0 to {}", reader.file(),
                       data::json_value_text(*ends), last));
    }
    config.eos_token_ids.push_back(one.get<std::size_t>());
  }
}

void read_heads(const data::ConfigReader& reader, LlamaConfig& config) {
  config.num_key_value_heads = config.num_attention_heads;
  reader.read_size("num_key_value_heads", 1, widest_llama, config.num_key_value_heads, false);
  ensure(config.num_attention_heads % config.num_key_value_heads == 0,
         fmt::format("{}: num_attention_heads = {} is not a multiple of num_key_value_heads = {}", reader.file(),
                     config.num_attention_heads, config.num_key_value_heads));
  reader.read_size("head_dim", 1, largest_llama_head, config.head_dim, false);
  if (config.head_dim == 0) {
    ensure(
        config.hidden_size % config.num_attention_heads == 0,
        fmt::format("{}: hidden_size = {} is not a multiple of num_attention_heads = {}; head_dim must then be given",
                    reader.file(), config.hidden_size, config.num_attention_heads));
    config.head_dim = config.hidden_size / config.num_attention_heads;
  }
  ensure(config.head_dim % 2 == 0 && config.head_dim <= largest_llama_head,
         fmt::format("{}: heads of {} elements; rotary embeddings take an even number up to {}", reader.file(),
                     config.head_dim, largest_llama_head));
}

/// Rejects options that would change the results and are not implemented.
void refuse_others(const data::ConfigReader& reader) {
  reader.read_choice("hidden_act", "silu", "swish");
  reader.refuse_true("attention_bias", " (no biases)");
  reader.refuse_true("mlp_bias", " (no biases)");
  double dropout = 0.0, turned = 1.0;
  reader.read_number("attention_dropout", false, 1.0, dropout);
  ensure(dropout == 0.0, fmt::format("{}: attention_dropout = {} is not supported; only 0 is", reader.file(), dropout));
  reader.read_number("partial_rotary_factor", true, 2.0, turned);
  ensure(turned == 1.0,
         fmt::format("{}: partial_rotary_factor = {} is not supported; only 1 is", reader.file(), turned));
}

OrderedJson rope_scaling_json(const RopeScaling& scaling) {
  if (scaling.type == RopeScaling::Type::none) return nullptr;
  OrderedJson json;
  json["rope_type"] = scaling.type == RopeScaling::Type::linear ? "linear" : "llama3";
  json["factor"] = scaling.factor;
  if (scaling.type == RopeScaling::Type::linear) return json;
  json["low_freq_factor"] = scaling.low_freq_factor;
  json["high_freq_factor"] = scaling.high_freq_factor;
  json["original_max_position_embeddings"] = scaling.original_max_position_embeddings;
  return json;
}

OrderedJson token_json(const std::optional<std::size_t>& id) { return id ? OrderedJson(*id) : OrderedJson(); }

}  // namespace

LlamaConfig parse_llama_config(const Json& json, const std::string& file) {
  const data::ConfigReader reader(json, file, model_title);
  reader.check_model_type("llama");
  LlamaConfig config;
  reader.read_size("vocab_size", 1, most_llama_tokens, config.vocab_size, true);
  reader.read_size("hidden_size", 1, widest_llama, config.hidden_size, true);
  reader.read_size("intermediate_size", 1, 4 * widest_llama, config.intermediate_size, true);
  reader.read_size("num_hidden_layers", 1, deepest_llama, config.num_hidden_layers, true);
  reader.read_size("num_attention_heads", 1, widest_llama, config.num_attention_heads, true);
  reader.read_size("max_position_embeddings", 1, longest_llama, config.max_position_embeddings, true);
  reader.read_number("rms_norm_eps", true, 0.1, config.rms_norm_eps);
  reader.read_number("initializer_range", false, 10.0, config.initializer_range);
  reader.read_flag("tie_word_embeddings", config.tie_word_embeddings);
  refuse_others(reader);
  read_heads(reader, config);
  read_rope(reader, config);
  read_tokens(reader, config);
  return config;
}

LlamaConfig read_llama_config(const std::filesystem::path& path) {
  return parse_llama_config(read_json(path), path.string());
}

LlamaConfig read_llama_config(const data::PretrainedModel& model) {
  return parse_llama_config(Json(model.config()), model.config_path().string());
}

OrderedJson llama_config_json(const LlamaConfig& config, std::string_view dtype) {
  OrderedJson json;
  json["architectures"] = {"LlamaForCausalLM"};
  json["model_type"] = "llama";
  json["vocab_size"] = config.vocab_size;
  json["hidden_size"] = config.hidden_size;
  json["intermediate_size"] = config.intermediate_size;
  json["num_hidden_layers"] = config.num_hidden_layers;
  json["num_attention_heads"] = config.num_attention_heads;
  json["num_key_value_heads"] = config.num_key_value_heads;
  json["head_dim"] = config.head_dim;
  json["hidden_act"] = "silu";
  json["max_position_embeddings"] = config.max_position_embeddings;
  json["rms_norm_eps"] = config.rms_norm_eps;
  // At the top level, where all versions of transformers read them.
  json["rope_theta"] = config.rope_theta;
  json["rope_scaling"] = rope_scaling_json(config.rope_scaling);
  json["tie_word_embeddings"] = config.tie_word_embeddings;
  json["attention_bias"] = false;
  json["attention_dropout"] = 0.0;
  json["mlp_bias"] = false;
  json["initializer_range"] = config.initializer_range;
  json["bos_token_id"] = token_json(config.bos_token_id);
  json["eos_token_id"] = config.eos_token_ids.size() == 1 ? OrderedJson(config.eos_token_ids.front())
                         : config.eos_token_ids.empty()   ? OrderedJson()
                                                          : OrderedJson(config.eos_token_ids);
  json["pad_token_id"] = token_json(config.pad_token_id);
  json["torch_dtype"] = dtype;
  return json;
}

}  // namespace mylos::families
