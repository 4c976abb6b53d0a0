#include "app/options/options.hpp"

#include <algorithm>
#include <iterator>

namespace mylos::app {

const std::vector<Option>& option_table() {
  static const std::vector<Option> table = [] {
    std::vector<Option> all;
    for (const auto part : {data_options, training_options, rank_options, answer_options, plan_options, tool_options}) {
      std::ranges::move(part(), std::back_inserter(all));
    }
    return all;
  }();
  return table;
}

std::string normalized_name(std::string_view name) {
  std::string normal(name);
  std::ranges::replace(normal, '_', '-');
  return normal;
}

const Option* find_option(std::string_view name) {
  const std::string normal = normalized_name(name);
  for (const Option& option : option_table()) {
    if (option.name == normal || std::ranges::find(option.aliases, normal) != option.aliases.end()) return &option;
  }
  return nullptr;
}

}  // namespace mylos::app
