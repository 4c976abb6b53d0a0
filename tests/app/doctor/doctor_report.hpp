#pragma once

#include "app/doctor/doctor_ranks.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace mylos::tests {

/// Returns an environment with these variables only.
inline parallel::Environment variables(std::map<std::string, std::string> values) {
  return [values = std::move(values)](const char* name) -> const char* {
    const auto found = values.find(name);
    return found == values.end() ? nullptr : found->second.c_str();
  };
}

/// Returns the report on findings from one rank.
inline std::string reported(const app::Findings& findings) {
  return report_text(fold({}, std::vector<app::Findings>{findings}), 1);
}

}  // namespace mylos::tests
