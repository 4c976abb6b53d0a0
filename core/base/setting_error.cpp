#include "core/base/setting_error.hpp"

#include <fmt/format.h>

#include <atomic>

namespace mylos {
namespace {

std::string in_backquotes(std::string_view name, std::string_view value) {
  return value.empty() ? fmt::format("`{}`", name) : fmt::format("`{} {}`", name, value);
}

std::atomic<SettingSpelling> setting_spelling = in_backquotes;

}  // namespace

void set_setting_spelling(SettingSpelling spelling) {
  setting_spelling = spelling != nullptr ? spelling : in_backquotes;
}

std::string setting(std::string_view name, std::string_view value) { return setting_spelling.load()(name, value); }

SettingError::SettingError(std::string_view name, std::string_view text) : SettingError(name, {}, text) {}

SettingError::SettingError(std::string_view name, std::string_view value, std::string_view text)
    : std::runtime_error(fmt::format("{}: {}", setting(name, value), text)), name_(name), text_(text) {}

}  // namespace mylos
