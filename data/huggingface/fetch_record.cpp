#include "data/huggingface/fetch_record.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/files/download.hpp"
#include "core/base/files/files.hpp"
#include "core/base/files/json.hpp"
#include "core/base/text/printable.hpp"
#include "core/base/text/python_json.hpp"

namespace mylos::data {
namespace {

using std::filesystem::path;

constexpr const char* record_name = "fetched.json";

template <class Takes>
bool check_files(const path& directory, const Takes& takes) {
  const path record = directory / record_name;
  if (!std::filesystem::exists(record)) return false;
  const Json json = read_json(record);
  const JsonLocation location(record.native());
  const JsonLocation sums(location, "sha256");
  for (const auto& [name, value] : as_object(member(json, "sha256", location), sums).items()) {
    if (!takes(name)) continue;
    const std::string& expected = as_string(value, JsonLocation(sums, name));
    ensure(name == path(name).filename(), fmt::format("{}: {} is not a file's name", record.string(), printable(name)));
    const std::string sum = sha256_of(directory / name);
    ensure(sum == expected, fmt::format("{} has SHA-256 {}, not {} as when it was fetched: run mylos fetch again",
                                        (directory / name).string(), sum, printable(expected)));
  }
  return true;
}

}  // namespace

void write_fetch_record(const path& directory, const std::string& source, const std::string& commit) {
  OrderedJson sums = OrderedJson::object();
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (entry.is_regular_file()) sums[entry.path().filename().string()] = sha256_of(entry.path());
  }
  const OrderedJson record = {
      {"source", source}, {"commit", commit.empty() ? OrderedJson() : OrderedJson(commit)}, {"sha256", sums}};
  write_text(directory / record_name, record.dump(2) + "\n");
}

bool check_fetch_record(const path& directory) {
  return check_files(directory, [](std::string_view) { return true; });
}

bool check_fetch_record(const path& directory, std::initializer_list<std::string_view> files) {
  return check_files(directory, [&](std::string_view name) { return std::ranges::find(files, name) != files.end(); });
}

}  // namespace mylos::data
