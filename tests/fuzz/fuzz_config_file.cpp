// --config FILE: an accepted configuration is unchanged after writing and reading, as for run.json.

#include <stdexcept>

#include "app/options/config_file.hpp"
#include "app/options/parse.hpp"
#include "tests/fuzz/inputs.hpp"

#include <nlohmann/json.hpp>

namespace {

mylos::app::Arguments read(std::string_view text) {
  const mylos::tests::MemoryFile file(text);
  const mylos::app::Command& train = *mylos::app::find_command("train");
  const mylos::app::Arguments defaults = mylos::app::default_arguments(train);
  mylos::app::Arguments arguments = defaults;
  mylos::app::Settings settings;
  mylos::app::read_config_file(mylos::FileReader(), file.path(), train, arguments, settings.configured);
  mylos::app::translate(settings, defaults, arguments.remarks);
  for (const mylos::app::Setting& each : settings.configured) {
    mylos::app::set_option(arguments, *each.option, each.value, each.shown);
  }
  return arguments;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const mylos::app::Command& train = *mylos::app::find_command("train");
  try {
    const auto settings = mylos::app::settings_json(train, read(mylos::tests::as_text(bytes, size)));
    const auto again = mylos::app::settings_json(train, read(settings.dump()));
    mylos::tests::expect(again == settings, "settings survive writing and reading");
  } catch (const std::runtime_error&) {  // how bad input is rejected, including UsageError
  }
  return 0;
}
