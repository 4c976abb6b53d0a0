#pragma once

#include <string>
#include <string_view>

namespace mylos::app {

/// Spells a setting of the engine as an option of this program: "--micro-batch", or "--micro-batch 4" with a value.
/// run_program passes this function to set_setting_spelling, so that messages of the engine name options.
std::string option_spelling(std::string_view name, std::string_view value);

}  // namespace mylos::app
