// --config FILE: a configuration that is accepted survives writing and reading, as run.json does.

#include <array>
#include <stdexcept>

#include "app/options/config_file.hpp"
#include "app/options/parse.hpp"
#include "tests/fuzz/inputs.hpp"

namespace mylos::app {
namespace {

constexpr std::array only_train = {
    Command{"train", train_command, "--model M --train FILE --output DIR", "fine-tunes a model"}};

}  // namespace

// app/options/commands.cpp would link all that the program does.
std::span<const Command> commands() { return only_train; }
const Command* find_command(std::string_view name) { return name == only_train[0].name ? &only_train[0] : nullptr; }

}  // namespace mylos::app

namespace {

mylos::app::Arguments read(std::string_view text) {
  const mylos::tests::MemoryFile file(text);
  const mylos::app::Command& train = *mylos::app::find_command("train");
  mylos::app::Arguments arguments = mylos::app::default_arguments(train);
  mylos::app::read_config_file(file.path(), train, arguments);
  return arguments;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const mylos::app::Command& train = *mylos::app::find_command("train");
  try {
    const auto settings = mylos::app::settings_json(train, read(mylos::tests::as_text(bytes, size)));
    const auto again = mylos::app::settings_json(train, read(settings.dump()));
    mylos::tests::expect(again == settings, "settings survive writing and reading");
  } catch (const std::runtime_error&) {  // how bad input is refused, UsageError among them
  }
  return 0;
}
