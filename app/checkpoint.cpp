#include "app/checkpoint/checkpoint.hpp"

#include "app/options/options.hpp"
#include "app/run_commands.hpp"
#include "core/base/error.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/quantities.hpp"
#include "core/base/text/standard_output.hpp"
#include "core/base/usage_error.hpp"
#include "parallel/checkpoint/checkpoint_directory.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <optional>
#include <system_error>

/// mylos checkpoint: shows what checkpoints contain, and verifies them.
namespace mylos::app {
namespace {

namespace fs = std::filesystem;
using OrderedJson = nlohmann::ordered_json;

/// Returns the value as JSON; a string that holds a JSON object becomes that object.
OrderedJson to_json(const parallel::CheckpointRecord::Value& value) {
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) return std::visit([](const auto& typed) { return OrderedJson(typed); }, value);
  OrderedJson parsed = try_parse_ordered_json(*text);
  return parsed.is_object() ? parsed : OrderedJson(*text);
}

OrderedJson describe_record(const parallel::CheckpointRecord& record) {
  OrderedJson members = OrderedJson::object();
  for (const auto& [name, value] : record.members()) members[name] = to_json(value);
  return members;
}

/// One row of the list. `error` is set if the file cannot be read, for example because the run has removed it since.
struct ListedCheckpoint {
  parallel::CheckpointEntry entry;
  std::optional<std::uintmax_t> bytes;
  bool latest = false;
  std::string error = {};
  OrderedJson record = {};
};

std::optional<std::uintmax_t> size_of(const fs::path& file) {
  std::error_code code;
  const std::uintmax_t bytes = fs::file_size(file, code);
  return code ? std::nullopt : std::optional(bytes);
}

std::vector<ListedCheckpoint> list(const fs::path& path) {
  const fs::path directory = parallel::checkpoints_directory(path);
  const fs::path latest = parallel::resolve_checkpoint(path);
  std::vector<ListedCheckpoint> listed;
  for (const parallel::CheckpointEntry& entry : parallel::list_checkpoints(directory)) {
    ListedCheckpoint row{.entry = entry, .bytes = size_of(entry.file), .latest = entry.file == latest};
    try {
      row.record = describe_record(parallel::read_checkpoint_record(entry.file));
      parallel::read_checkpoint_index(entry.file);
    } catch (const std::runtime_error& error) {
      row.error = error.what();
    }
    listed.push_back(std::move(row));
  }
  ensure(!listed.empty(), fmt::format("{}: contains no checkpoint", path.string()));
  return listed;
}

std::string epoch_text(const OrderedJson& record) {
  if (!record.is_object() || !record.contains("epoch") || !record["epoch"].is_number()) return "?";
  return fmt::format("{:.2f}", record["epoch"].get<double>());
}

int list_directory(const Arguments& arguments) {
  const std::vector<ListedCheckpoint> listed = list(arguments.positional[1]);
  if (arguments.json) {
    OrderedJson rows = OrderedJson::array();
    for (const ListedCheckpoint& row : listed) {
      rows.push_back({{"step", row.entry.step},
                      {"file", row.entry.file.string()},
                      {"bytes", row.bytes ? OrderedJson(*row.bytes) : OrderedJson()},
                      {"latest", row.latest},
                      {"error", row.error.empty() ? OrderedJson() : OrderedJson(row.error)},
                      {"run", row.record}});
    }
    print_indented_json(rows);
    return 0;
  }
  print(fmt::format("{:>9} {:>7} {:>12}  {}\n", "step", "epoch", "size", "file"));
  for (const ListedCheckpoint& row : listed) {
    print(fmt::format("{:>9} {:>7} {:>12}  {}{}\n", row.entry.step, epoch_text(row.record),
                      row.bytes ? bytes_text(*row.bytes) : "?", row.entry.file.string(),
                      row.latest ? "  (latest)" : ""));
    if (!row.error.empty()) log_line(row.error);
  }
  return 0;
}

/// Prints one line per value: "name  value". Members of objects, also of objects in a list, have their own lines, named
/// by keys and indices joined with dots ("configuration.resolved.steps").
void print_members(const std::string& name, const OrderedJson& value) {
  const bool has_objects = value.is_array() && !value.empty() && value.front().is_object();
  if (value.is_object() && !value.empty()) {
    for (const auto& [key, member] : value.items()) {
      print_members(name.empty() ? key : fmt::format("{}.{}", name, key), member);
    }
  } else if (has_objects) {
    for (std::size_t i = 0; i < value.size(); ++i)
      print(fmt::format("{:<23} {}\n", fmt::format("{}[{}]", name, i), value[i].dump()));
  } else {
    print(fmt::format("{:<23} {}\n", name, plain_text(value)));
  }
}

int show(const Arguments& arguments) {
  const fs::path file = checkpoint_at(arguments.positional[1]);
  const parallel::CheckpointIndex index = parallel::read_checkpoint_index(file);
  const OrderedJson record = describe_record(index.record);
  if (arguments.json) {
    OrderedJson tensors = OrderedJson::array();
    for (const auto& tensor : index.datasets) {
      tensors.push_back({{"name", tensor.name},
                         {"shape", tensor.shape},
                         {"file", tensor.file->path().string()},
                         {"offset", tensor.offset}});
    }
    print_indented_json({{"file", file.string()}, {"run", record}, {"tensors", tensors}});
    return 0;
  }
  print(fmt::format("{}\n", file.string()));
  print_members("", record);
  for (const auto& tensor : index.datasets) {
    print(fmt::format("{} {}\n", tensor.name, shape_text(tensor.shape)));
  }
  return 0;
}

/// Returns every checkpoint of a directory, or one file.
std::vector<fs::path> files_of(const std::string& path) {
  std::error_code unreadable;  // reported by the call that opens it
  if (!fs::is_directory(path, unreadable)) return {checkpoint_at(path)};
  std::vector<fs::path> files;
  for (const auto& entry : parallel::list_checkpoints(parallel::checkpoints_directory(path))) {
    files.push_back(entry.file);
  }
  ensure(!files.empty(), fmt::format("{}: contains no checkpoint", path));
  return files;
}

int verify(const Arguments& arguments) {
  OrderedJson rows = OrderedJson::array();
  bool all_right = true;
  for (const fs::path& file : files_of(arguments.positional[1])) {
    std::uint64_t bytes = 0;
    std::string error;
    try {
      bytes = parallel::verify_checkpoint(file);
    } catch (const std::runtime_error& damage) {
      error = damage.what();
    }
    all_right = all_right && error.empty();
    rows.push_back({{"file", file.string()},
                    {"right", error.empty()},
                    {"bytes", bytes},
                    {"error", error.empty() ? OrderedJson() : OrderedJson(error)}});
    if (!error.empty()) log_line("mylos: error: " + error);
    if (error.empty() && !arguments.json) {
      print(fmt::format("{}: {} of values, all checksums match\n", file.string(), bytes_text(bytes)));
    }
  }
  if (arguments.json) print_indented_json(rows);
  return all_right ? 0 : 1;
}

/// Checks arguments and options that only some of the verbs accept.
void check_words(const Arguments& arguments) {
  const std::string& verb = arguments.positional[0];
  const bool is_diff = verb == "diff";
  if (is_diff != (arguments.positional.size() == 3)) {
    throw UsageError(fmt::format("checkpoint {} needs {}", verb, is_diff ? "two paths" : "one path"));
  }
  check_options_of("checkpoint", verb, arguments);
}

}  // namespace

int run_checkpoint(const Arguments& arguments) {
  using Verb = std::pair<std::string_view, int (*)(const Arguments&)>;
  static constexpr std::array verbs = {Verb{"list", list_directory}, Verb{"show", show}, Verb{"verify", verify},
                                       Verb{"export", export_checkpoint}, Verb{"diff", diff_checkpoints}};
  for (const auto& [name, run] : verbs) {
    if (name != arguments.positional[0]) continue;
    check_words(arguments);
    return run(arguments);
  }
  throw UsageError(fmt::format("checkpoint {}: expected list, show, verify, export or diff", arguments.positional[0]));
}

}  // namespace mylos::app
