#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

/// Settings in messages. The engine calls a setting by its name, such as "micro-batch". How users write it, for example
/// as a command-line option, depends on the program.
namespace mylos {

/// Spells a setting for the users of a program, such as "--micro-batch 4". `value` is empty if the message shows none.
using SettingSpelling = std::string (*)(std::string_view name, std::string_view value);

/// Makes setting() use `spelling`; null restores the default. A program calls this once, when it starts. Settings are
/// spelled while a message is composed, not searched for in it, so a file name that looks like one is not changed.
void set_setting_spelling(SettingSpelling spelling);

/// Returns the setting, and its value unless that is empty, for a message: as the program spells it, by default in
/// backquotes. tests/structure/ checks that a literal `name` is the name of an option.
std::string setting(std::string_view name, std::string_view value = {});

/// The value of a setting cannot be used. The message is the setting, a colon, and a text that says why and what to
/// change.
class SettingError : public std::runtime_error {
 public:
  /// Without a value in the message, as for a switch.
  SettingError(std::string_view name, std::string_view text);
  SettingError(std::string_view name, std::string_view value, std::string_view text);

  /// The setting, such as "micro-batch".
  const std::string& name() const { return name_; }
  /// The message without the setting.
  const std::string& text() const { return text_; }

 private:
  std::string name_, text_;
};

}  // namespace mylos
