#include "families/llama/llama_config.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "data/huggingface/model_type.hpp"

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

RotaryScaling::Kind read_rope_type(const data::ConfigReader& rope) {
  const auto* type = rope.find("rope_type");
  const char* const key = type == nullptr ? "type" : "rope_type";  // its former name
  const auto* former = rope.find("type");
  ensure(type == nullptr || former == nullptr || *type == *former,
         fmt::format("{}: rope_type and type contradict each other; remove one", rope.file()));
  if (type == nullptr) type = former;
  if (type == nullptr) {
    for (const auto& [other, value] : rope.json().items()) {
      ensure(value.is_null() || other == "rope_theta" || other == "partial_rotary_factor",
             fmt::format("{}: {} without a rope_type; add \"rope_type\"", rope.file(), other));
    }
    return RotaryScaling::Kind::none;
  }
  if (*type == "default") return RotaryScaling::Kind::none;
  if (*type == "linear") return RotaryScaling::Kind::linear;
  if (*type == "llama3") return RotaryScaling::Kind::llama3;
  if (*type == "yarn") return RotaryScaling::Kind::yarn;
  fail(fmt::format("{}: {} = {} is not supported; only \"default\", \"linear\", \"llama3\" and \"yarn\" are",
                   rope.file(), key, data::json_value_text(*type)));
}

const char* rope_type_name(RotaryScaling::Kind kind) {
  return kind == RotaryScaling::Kind::linear ? "linear" : kind == RotaryScaling::Kind::llama3 ? "llama3" : "yarn";
}

void read_yarn(const data::ConfigReader& rope, RotaryScaling& scaling) {
  for (const char* key : {"mscale", "mscale_all_dim"}) {
    ensure(rope.find(key) == nullptr,
           fmt::format("{}: {} is not supported; give attention_factor instead", rope.file(), key));
  }
  scaling.original_positions = 0;
  rope.read_size("original_max_position_embeddings", 1, longest_llama, scaling.original_positions, false);
  rope.read_number("beta_fast", true, largest_factor, scaling.fast);
  rope.read_number("beta_slow", true, largest_factor, scaling.slow);
  rope.read_flag("truncate", scaling.truncates);
  rope.read_number("attention_factor", true, largest_factor, scaling.attention_factor);
}

void require_key(const data::ConfigReader& rope, const char* key, const char* type) {
  if (rope.find(key) != nullptr) return;
  fail(fmt::format("{}: no \"{}\"; rotary embeddings of type \"{}\" need it", rope.file(), key, type));
}

/// Reads rope_scaling or rope_parameters.
RotaryScaling read_scaling(const data::ConfigReader& rope) {
  RotaryScaling scaling{.kind = read_rope_type(rope)};
  double turned = 1.0;
  rope.read_number("partial_rotary_factor", true, 2.0, turned);
  ensure(turned == 1.0, fmt::format("{}: partial_rotary_factor = {} is not supported; only 1 is", rope.file(), turned));
  if (scaling.kind == RotaryScaling::Kind::none) return scaling;
  require_key(rope, "factor", rope_type_name(scaling.kind));
  rope.read_number("factor", true, largest_factor, scaling.factor);
  if (scaling.kind == RotaryScaling::Kind::yarn) read_yarn(rope, scaling);
  if (scaling.kind != RotaryScaling::Kind::llama3) return scaling;
  for (const char* key : {"low_freq_factor", "high_freq_factor", "original_max_position_embeddings"}) {
    require_key(rope, key, "llama3");
  }
  rope.read_number("low_freq_factor", true, largest_factor, scaling.low_frequency_factor);
  rope.read_number("high_freq_factor", true, largest_factor, scaling.high_frequency_factor);
  rope.read_size("original_max_position_embeddings", 1, longest_llama, scaling.original_positions, true);
  ensure(scaling.low_frequency_factor < scaling.high_frequency_factor,
         fmt::format("{}: low_freq_factor = {} is not below high_freq_factor = {}", rope.file(),
                     scaling.low_frequency_factor, scaling.high_frequency_factor));
  return scaling;
}

/// Throws if the positions of the pretraining stand beside the scaling, too, and differ: versions of transformers
/// disagree which count.
void check_original_positions(const data::ConfigReader& reader, const LlamaShape& config) {
  const RotaryScaling& scaling = config.rope_scaling;
  if (scaling.kind != RotaryScaling::Kind::llama3 && scaling.kind != RotaryScaling::Kind::yarn) return;
  const std::size_t scaled = scaling.original_positions > 0 ? scaling.original_positions : config.positions;
  std::size_t given = scaled;
  reader.read_size("original_max_position_embeddings", 1, longest_llama, given, false);
  ensure(given == scaled,
         fmt::format("{}: original_max_position_embeddings = {}, but rotary embeddings are scaled from "
                     "{}; remove one",
                     reader.file(), given, scaled));
}

/// Reads rope_theta and the scaling, both at the top level and in rope_parameters, as transformers 5 writes them.
void read_rope(const data::ConfigReader& reader, LlamaShape& config) {
  reader.read_number("rope_theta", true, largest_theta, config.rope_theta);
  bool has_theta = reader.find("rope_theta") != nullptr, has_scaling = false;
  for (const char* const key : {"rope_scaling", "rope_parameters"}) {
    const auto* parameters = reader.find(key);
    if (parameters == nullptr) continue;
    const data::ConfigReader rope(*parameters, fmt::format("{}: {}", reader.file(), key), "a model");
    double theta = config.rope_theta;
    rope.read_number("rope_theta", true, largest_theta, theta);
    ensure(!has_theta || theta == config.rope_theta,
           fmt::format("{}: rope_theta = {}, but {} in {}", reader.file(), config.rope_theta, theta, key));
    const RotaryScaling scaling = read_scaling(rope);
    ensure(!has_scaling || scaling == config.rope_scaling,
           fmt::format("{}: rope_scaling and rope_parameters contradict each other; remove one", reader.file()));
    has_theta = has_theta || rope.find("rope_theta") != nullptr;
    has_scaling = true;
    config.rope_theta = theta;
    config.rope_scaling = scaling;
  }
  check_original_positions(reader, config);
}

void read_tokens(const data::ConfigReader& reader, const LlamaMember& member, LlamaShape& config) {
  if (!member.has_tokens) config.begin_token.reset();
  const std::size_t last = config.vocabulary - 1;
  const auto read = [&](const char* key, std::optional<std::int32_t> absent) -> std::optional<std::int32_t> {
    if (reader.is_null(key)) return std::nullopt;
    if (reader.find(key) == nullptr) return absent;
    std::size_t id = 0;
    reader.read_size(key, 0, last, id, true);
    return static_cast<std::int32_t>(id);
  };
  config.begin_token = read("bos_token_id", config.begin_token);
  config.padding_token = read("pad_token_id", std::nullopt).value_or(no_padding);
  if (!member.has_tokens || reader.is_null("eos_token_id")) config.end_tokens.clear();
  reader.read_ids("eos_token_id", config.vocabulary, config.end_tokens);
}

/// Reads a size for which null means 0, and absence the member's own.
std::size_t size_or(const data::ConfigReader& reader, const char* key, std::size_t most, std::size_t absent) {
  if (reader.is_null(key)) return 0;
  reader.read_size(key, 1, most, absent, false);
  return absent;
}

void read_heads(const data::ConfigReader& reader, const LlamaMember& member, LlamaShape& config) {
  config.key_value_heads = size_or(reader, "num_key_value_heads", widest_llama, member.key_value_heads);
  if (config.key_value_heads == 0) config.key_value_heads = config.heads;
  ensure(config.heads % config.key_value_heads == 0,
         fmt::format("{}: num_attention_heads = {} is not a multiple of num_key_value_heads = {}", reader.file(),
                     config.heads, config.key_value_heads));
  config.head_size = size_or(reader, "head_dim", largest_llama_head, member.head_size);
  if (config.head_size == 0) {
    ensure(
        config.hidden % config.heads == 0,
        fmt::format("{}: hidden_size = {} is not a multiple of num_attention_heads = {}; head_dim must then be given",
                    reader.file(), config.hidden, config.heads));
    config.head_size = config.hidden / config.heads;
  }
  ensure(config.head_size % 2 == 0 && config.head_size <= largest_llama_head,
         fmt::format("{}: heads of {} elements; rotary embeddings take an even number up to {}", reader.file(),
                     config.head_size, largest_llama_head));
}

void read_biases(const data::ConfigReader& reader, const LlamaMember& member, LlamaShape& config) {
  config.qkv_bias = member.biases == LlamaMember::Biases::of_qkv;
  if (member.biases == LlamaMember::Biases::chosen) reader.read_flag("attention_bias", config.qkv_bias);
  config.output_bias = config.qkv_bias && member.biases == LlamaMember::Biases::chosen;
  if (member.has_mlp_bias) reader.read_flag("mlp_bias", config.mlp_bias);
}

/// Throws if layer_types says something else of a layer than the other keys.
void check_layer_types(const data::ConfigReader& reader, const LlamaShape& config) {
  const auto* types = reader.find("layer_types");
  if (types == nullptr) return;
  for (std::size_t layer = 0; layer < config.layers; ++layer) {
    const bool has_window = attention_shape(config, layer).window != no_window;
    const std::string expected = has_window ? "sliding_attention" : "full_attention";
    const bool is_said = types->is_array() && layer < types->size();
    if (is_said && (*types)[layer] == expected) continue;
    fail(
        fmt::format("{}: layer_types says {} of layer {}; only \"{}\", which follows from the other keys, is supported",
                    reader.file(), is_said ? data::json_value_text((*types)[layer]) : "nothing", layer, expected));
  }
}

void read_window(const data::ConfigReader& reader, const LlamaMember& member, LlamaShape& config) {
  if (member.window == LlamaMember::Window::none) return;
  bool is_used = true;
  std::size_t first = 0;
  if (member.window == LlamaMember::Window::chosen) {
    is_used = false;
    first = 28;
    reader.read_flag("use_sliding_window", is_used);
    reader.read_size("max_window_layers", 0, longest_llama, first, false);
  }
  const std::size_t window = is_used ? size_or(reader, "sliding_window", longest_llama, 4096) : 0;
  if (window > 0 && first < config.layers) {
    config.window = static_cast<int>(window);
    config.first_windowed = first;
  }
  check_layer_types(reader, config);
}

/// Rejects options that would change the results and are not implemented.
void refuse_others(const data::ConfigReader& reader) {
  reader.read_choice("hidden_act", "silu", "swish");
  double dropout = 0.0, turned = 1.0;
  reader.read_number("attention_dropout", false, 1.0, dropout);
  ensure(dropout == 0.0, fmt::format("{}: attention_dropout = {} is not supported; only 0 is", reader.file(), dropout));
  reader.read_number("partial_rotary_factor", true, 2.0, turned);
  ensure(turned == 1.0,
         fmt::format("{}: partial_rotary_factor = {} is not supported; only 1 is", reader.file(), turned));
}

OrderedJson rope_scaling_json(const RotaryScaling& scaling) {
  if (scaling.kind == RotaryScaling::Kind::none) return nullptr;
  OrderedJson json;
  json["rope_type"] = rope_type_name(scaling.kind);
  json["factor"] = scaling.factor;
  if (scaling.kind == RotaryScaling::Kind::linear) return json;
  if (scaling.kind == RotaryScaling::Kind::yarn) {
    if (scaling.original_positions > 0) json["original_max_position_embeddings"] = scaling.original_positions;
    json["beta_fast"] = scaling.fast;
    json["beta_slow"] = scaling.slow;
    json["truncate"] = scaling.truncates;
    if (scaling.attention_factor > 0.0) json["attention_factor"] = scaling.attention_factor;
    return json;
  }
  json["low_freq_factor"] = scaling.low_frequency_factor;
  json["high_freq_factor"] = scaling.high_frequency_factor;
  json["original_max_position_embeddings"] = scaling.original_positions;
  return json;
}

void write_window(const LlamaMember& member, const LlamaShape& config, OrderedJson& json) {
  if (member.window == LlamaMember::Window::none) return;
  const bool has_window = config.window != no_window;
  json["sliding_window"] = has_window ? OrderedJson(static_cast<std::uint32_t>(config.window)) : OrderedJson();
  if (member.window == LlamaMember::Window::always) return;
  json["use_sliding_window"] = has_window;
  json["max_window_layers"] = has_window ? config.first_windowed : config.layers;
}

OrderedJson token_json(std::optional<std::int32_t> id) {
  return id ? OrderedJson(static_cast<std::uint32_t>(*id)) : OrderedJson();
}

const LlamaMember* find_member(std::string_view model_type) {
  const auto* found = std::ranges::find(llama_members, model_type, &LlamaMember::model_type);
  return found == llama_members.end() ? nullptr : found;
}

/// Returns the member that a configuration is of; its errors are those of a Llama's.
const LlamaMember& member_of(const data::ModelConfig& from) {
  if (const LlamaMember* found = find_member(data::model_type_of(from.json, from.file))) return *found;
  data::ConfigReader(from, "a Llama").check_model_type("llama");  // fails
  return llama_members.front();
}

bool is_rotary_buffer(std::string_view name) { return name.ends_with("rotary_emb.inv_freq"); }

}  // namespace

const LlamaMember& llama_member(std::string_view model_type) {
  const LlamaMember* found = find_member(model_type);
  require(found != nullptr, fmt::format("Llama: no member of the family is called {}", model_type));
  return *found;
}

LlamaShape read_llama_config(const data::ModelConfig& from) {
  const LlamaMember& member = member_of(from);
  const data::ConfigReader reader(from, std::string(member.model));
  LlamaShape config{.model_type = member.model_type, .head_norms = member.has_head_norms};
  reader.read_size("vocab_size", 1, most_llama_tokens, config.vocabulary, true);
  reader.read_size("hidden_size", 1, widest_llama, config.hidden, true);
  reader.read_size("intermediate_size", 1, 4 * widest_llama, config.feed_forward, true);
  reader.read_size("num_hidden_layers", 1, deepest_llama, config.layers, true);
  reader.read_size("num_attention_heads", 1, widest_llama, config.heads, true);
  reader.read_size("max_position_embeddings", 1, longest_llama, config.positions, true);
  reader.read_number("rms_norm_eps", true, 0.1, config.rms_norm_epsilon);
  reader.read_number("initializer_range", false, 10.0, config.initializer_range);
  reader.read_flag("tie_word_embeddings", config.tied);
  refuse_others(reader);
  read_heads(reader, member, config);
  read_biases(reader, member, config);
  read_window(reader, member, config);
  read_rope(reader, config);
  ensure(config.rope_scaling.kind != RotaryScaling::Kind::yarn || config.rope_theta > 1.0,
         fmt::format("{}: rope_theta = {} is not above 1, which rotary embeddings of type \"yarn\" need", reader.file(),
                     config.rope_theta));
  read_tokens(reader, member, config);
  return config;
}

OrderedJson llama_config_json(const LlamaShape& config, std::string_view dtype) {
  const LlamaMember& member = llama_member(config.model_type);
  OrderedJson json;
  json["architectures"] = {fmt::format("{}ForCausalLM", member.architecture)};
  json["model_type"] = member.model_type;
  json["vocab_size"] = config.vocabulary;
  json["hidden_size"] = config.hidden;
  json["intermediate_size"] = config.feed_forward;
  json["num_hidden_layers"] = config.layers;
  json["num_attention_heads"] = config.heads;
  json["num_key_value_heads"] = config.key_value_heads;
  json["head_dim"] = config.head_size;
  json["hidden_act"] = "silu";
  json["max_position_embeddings"] = config.positions;
  json["rms_norm_eps"] = data::shortest_decimal(config.rms_norm_epsilon);
  // At the top level, where all versions of transformers read them.
  json["rope_theta"] = config.rope_theta;
  json["rope_scaling"] = rope_scaling_json(config.rope_scaling);
  json["tie_word_embeddings"] = config.tied;
  if (member.biases == LlamaMember::Biases::chosen) json["attention_bias"] = config.qkv_bias;
  json["attention_dropout"] = 0.0;
  if (member.has_mlp_bias) json["mlp_bias"] = config.mlp_bias;
  write_window(member, config, json);
  json["initializer_range"] = data::shortest_decimal(config.initializer_range);
  const std::vector<std::uint32_t> ends(config.end_tokens.begin(), config.end_tokens.end());
  const auto padding = config.padding_token == no_padding ? std::nullopt : std::optional(config.padding_token);
  json["bos_token_id"] = token_json(config.begin_token);
  json["eos_token_id"] = ends.size() == 1 ? OrderedJson(ends.front())
                         : ends.empty()   ? OrderedJson()
                                          : OrderedJson(ends);
  json["pad_token_id"] = token_json(padding);
  json["torch_dtype"] = dtype;
  return json;
}

std::string canonical_llama_name(std::string_view name) {
  for (const auto* part : {"embed_tokens.", "layers.", "norm."}) {
    if (name.starts_with(part)) return "model." + std::string(name);
  }
  return std::string(name);
}

data::TensorNaming llama_tensor_naming(bool tied) {
  return {.model = "a Llama",
          .canonical = canonical_llama_name,
          .is_ignored = is_rotary_buffer,
          .copy = tied ? "lm_head.weight" : "",
          .copied = "model.embed_tokens.weight"};
}

}  // namespace mylos::families
