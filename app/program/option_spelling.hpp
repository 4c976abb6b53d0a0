#pragma once

#include <string>
#include <string_view>

namespace mylos::app {

/// Spells a setting of the engine as an option of this program: "--micro-batch", or "--micro-batch 4" with a value.
/// Messages of the engine contain it once run_program has passed it to set_setting_spelling.
std::string option_spelling(std::string_view name, std::string_view value);

}  // namespace mylos::app
