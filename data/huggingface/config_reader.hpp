#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/files/file_reader.hpp"
#include "core/base/files/json.hpp"

/// Checked access to the values of a config.json, used for all model families. Errors are std::runtime_error with the
/// file, the key, its value and the supported values.
namespace mylos::data {

struct KnownModel;
class PretrainedModel;

/// Formats a value as in the file, on one line.
std::string json_value_text(const Json& value);

/// Returns " (ViTForImageClassification)", the architecture that a config.json names; empty if it names none.
std::string architecture_text(const Json& config);

/// Returns the shortest decimals that read as the same floats: 0.1307 for a float equal to 0.1307000070810318.
double shortest_decimal(float value);
std::vector<double> shortest_decimals(const std::vector<float>& values);

/// The contents of a model's config.json, and the name of the file in messages. Errors: those of read_json and
/// parse_json.
struct ModelConfig {
  ModelConfig(Json said, std::string name) : json(std::move(said)), file(std::move(name)) {}
  ModelConfig(const FileReader& files, const std::filesystem::path& path)
      : ModelConfig(read_json(files, path), path.string()) {}
  ModelConfig(const KnownModel& known);
  ModelConfig(const PretrainedModel& model);

  Json json;
  std::string file;
};

class ConfigReader {
 public:
  /// Reads `json`, which came from `file` and must outlive the reader. `model` is a phrase for messages, such as "a
  /// BERT model".
  ConfigReader(const Json& json, std::string file, std::string model);
  ConfigReader(const ModelConfig& config, std::string model)
      : ConfigReader(config.json, config.file, std::move(model)) {}

  /// Returns null if the key is absent or null. Hugging Face treats these alike, except for pad_token_id.
  const Json* find(const char* key) const;
  bool is_null(const char* key) const;

  /// Reads a size in [least, most]. If the key is absent, `value` is unchanged; with `required` that is an error.
  void read_size(const char* key, std::size_t least, std::size_t most, std::size_t& value, bool required) const;
  /// Reads a number in [0, limit), or in (0, limit) if `positive`. `value` is unchanged if the key is absent.
  void read_number(const char* key, bool positive, double limit, double& value) const;
  void read_number(const char* key, bool positive, double limit, float& value) const;
  /// Reads an id below `count`, or a list of them. `ids` is unchanged if the key is absent.
  void read_ids(const char* key, std::size_t count, std::vector<std::int32_t>& ids) const;
  /// Reads true or false. `value` is unchanged if the key is absent.
  void read_flag(const char* key, bool& value) const;
  /// Throws unless the key is absent or has one of the two accepted values.
  void read_choice(const char* key, std::string_view accepted, std::string_view alias) const;
  /// Returns whether the key has the second of two values rather than the first; `absent` if it is absent.
  bool read_second(const char* key, std::string_view first, std::string_view second, bool absent) const;
  /// Throws unless the key is absent or false. `why` is appended to the message.
  void refuse_true(const char* key, std::string_view why = "") const;

  /// Throws unless model_type, or what stands in its place (model_type_of), is `wanted`.
  void check_model_type(std::string_view wanted) const;

  const std::string& file() const { return file_; }
  const Json& json() const { return json_; }

 private:
  std::string file_, model_;
  const Json& json_;
};

}  // namespace mylos::data
