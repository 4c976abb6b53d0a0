#include "tasks/interface/order_file.hpp"

#include "core/base/crc32c.hpp"
#include "core/base/error.hpp"
#include "core/base/files/text_file.hpp"

#include <fmt/format.h>

#include <span>
#include <string>

namespace mylos::tasks {

std::vector<std::vector<std::size_t>> read_order_file(const FileReader& files, const std::filesystem::path& path,
                                                      std::string_view entry, const OrderEntry& take) {
  const std::string text = read_text_file(files, path);
  std::vector<std::vector<std::size_t>> order;
  std::size_t number = 0;
  for (const std::string_view line : split_lines(text)) {
    const std::string name = fmt::format("{}: line {}", path.string(), ++number);
    const JsonLocation location(name);
    if (line.find_first_not_of(" \t") == std::string_view::npos) {
      location.fail(fmt::format("is blank; each line is a step, a list of {}", entry));
    }
    const Json step = parse_json(line, name);
    if (as_list(step, location).empty()) location.fail("a step has no samples");
    order.emplace_back();
    for (const Json& each : step) take(each, name, order.back());
  }
  ensure(!order.empty(), fmt::format("{}: contains no steps", path.string()));
  return order;
}

std::uint32_t order_checksum(const std::vector<std::vector<std::size_t>>& order) {
  std::vector<std::uint64_t> values;
  for (const std::vector<std::size_t>& step : order) {
    values.push_back(step.size());
    values.insert(values.end(), step.begin(), step.end());
  }
  return crc32c(std::as_bytes(std::span(values)));
}

}  // namespace mylos::tasks
