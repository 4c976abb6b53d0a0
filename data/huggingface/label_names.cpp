#include "data/huggingface/label_names.hpp"

#include <fmt/format.h>

#include <charconv>

#include "core/base/error.hpp"
#include "core/base/text/printable.hpp"

namespace mylos::data {
namespace {

/// Reads the names in id2label, whose keys are the strings "0", "1", ...
std::vector<std::string> named_labels(const ConfigReader& reader, const Json& names) {
  if (!names.is_object() || names.empty()) {
    fail(fmt::format("{}: id2label is not an object of label names", reader.file()));
  }
  std::vector<std::string> labels(names.size());
  std::vector<bool> is_there(names.size());
  for (const auto& [key, name] : names.items()) {
    std::size_t id = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    const bool is_id = error == std::errc() && end == key.data() + key.size() && id < labels.size() && !is_there[id];
    if (!is_id || !name.is_string()) {
      fail(fmt::format("{}: id2label: \"{}\": {} is not the name of one of its labels 0 to {}", reader.file(),
                       printable(key), json_value_text(name), labels.size() - 1));
    }
    labels[id] = name.get<std::string>();
    is_there[id] = true;
  }
  return labels;
}

}  // namespace

std::vector<std::string> unnamed_labels(std::size_t count) {
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < count; ++i) labels.push_back(fmt::format("LABEL_{}", i));
  return labels;
}

std::vector<std::string> read_label_names(const ConfigReader& reader, std::size_t count) {
  reader.read_size("num_labels", 1, most_labels, count, false);
  const Json* names = reader.find("id2label");
  if (names == nullptr) return unnamed_labels(count);
  std::vector<std::string> labels = named_labels(reader, *names);
  if (reader.find("num_labels") == nullptr || count == labels.size()) return labels;
  fail(fmt::format("{}: num_labels = {}, but id2label has {}", reader.file(), count, labels.size()));
}

void write_label_names(const std::vector<std::string>& labels, OrderedJson& config) {
  OrderedJson names = OrderedJson::object(), ids = OrderedJson::object();
  for (std::size_t id = 0; id < labels.size(); ++id) {
    names[std::to_string(id)] = labels[id];
    ids[labels[id]] = id;
  }
  config["id2label"] = std::move(names);
  config["label2id"] = std::move(ids);
}

}  // namespace mylos::data
