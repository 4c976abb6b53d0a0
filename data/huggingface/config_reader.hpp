#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/json.hpp"

/// What readers of config.json share, whatever the model: values by their key, checked. Errors are std::runtime_error
/// naming the file, the key, its value and what is supported.
namespace mylos::data {

/// A value as it stands in the file, on one line.
std::string json_value_text(const Json& value);

class ConfigReader {
 public:
  /// `json`, which outlives the reader, came from `file`, and describes `model`: "a BERT model".
  ConfigReader(const Json& json, std::string file, std::string model);

  /// Null where the key is absent or null, which are the same to Hugging Face but for pad_token_id.
  const Json* find(const char* key) const;
  bool is_null(const char* key) const;

  /// A size in [least, most]; `value` stays where the key is absent, which `required` forbids.
  void read_size(const char* key, std::size_t least, std::size_t most, std::size_t& value, bool required) const;
  /// A number in [0, limit), or in (0, limit) where `positive`; `value` stays where the key is absent.
  void read_number(const char* key, bool positive, double limit, double& value) const;
  /// True or false; `value` stays where the key is absent.
  void read_flag(const char* key, bool& value) const;
  /// Fails unless the key is absent or one of two accepted values.
  void read_choice(const char* key, std::string_view accepted, std::string_view alias) const;
  /// Fails unless the key is absent or false; `why` follows in the message.
  void refuse_true(const char* key, std::string_view why = "") const;

  const std::string& file() const { return file_; }
  const Json& json() const { return json_; }

 private:
  std::string file_, model_;
  const Json& json_;
};

}  // namespace mylos::data
