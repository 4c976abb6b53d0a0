#include "app/options/commands.hpp"

#include "app/options/options.hpp"
#include "app/options/peer_options.hpp"
#include "core/base/options/option_values.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace mylos::app {
namespace {

using Words = std::vector<std::string>;

/// Returns whether a word of a row names a command, or a part of one: the first argument of "bench" is
/// "gemm|step|batch".
bool is_command_or_part(const std::string& word) {
  const std::vector<std::string> names = split(word, '/');
  const Command* command = find_command(names.front());
  if (command == nullptr || names.size() == 1) return command != nullptr;
  const std::vector<std::string> parts = split(command->arguments.substr(0, command->arguments.find(' ')), '|');
  return std::ranges::find(parts, names[1]) != parts.end();
}

/// A row names other rows as words, which the compiler does not check.
TEST(Commands, RowsNameCommandsAndOptionsThatExist) {
  for (const tasks::TaskKind* task : tasks::task_kinds()) {
    for (const Option& option : option_table(*task)) {
      for (const std::string& name : split(option.commands, ' ')) {
        EXPECT_TRUE(is_command_or_part(name)) << option.name << ": " << name;
      }
      for (const CommandHelp& each : option.command_help) {
        for (const std::string& name : split(each.commands, ' ')) EXPECT_TRUE(is_command_or_part(name)) << option.name;
      }
      const auto& [needed, choice, why, unless] = option.traits.needs;
      const Option* other = needed.empty() ? nullptr : find_option(needed, *task);
      EXPECT_EQ(other == nullptr, needed.empty()) << option.name;
      if (!choice.empty())
        EXPECT_TRUE(std::ranges::find(other->choices, choice) != other->choices.end()) << option.name;
      if (!choice.empty()) EXPECT_TRUE(option.copy) << option.name;
      EXPECT_TRUE(option.print || option.traits.on_resume == OnResume::same) << option.name;
    }
    for (const PeerOption& peer : peer_options(*task)) {
      Arguments arguments;
      if (!peer.value.empty()) EXPECT_TRUE(find_option(peer.option, *task)->parse(arguments, peer.value)) << peer.name;
      for (const std::string& name : peer.commands.empty() ? Words() : split(peer.commands, ' ')) {
        EXPECT_TRUE(is_command_or_part(name)) << peer.name << ": " << name;
      }
    }
  }
  for (const Command& command : commands()) {
    for (const std::string& name : command.needs.empty() ? std::vector<std::string>() : split(command.needs, ' ')) {
      const Option* option = find_option(name);
      ASSERT_NE(option, nullptr) << name;
      EXPECT_TRUE(has_option(command, *option)) << command.name << " " << name;
    }
  }
}

/// Returns the names of the options of all tasks that `has` accepts, in alphabetical order.
template <class Has>
std::string names_where(const Has& has) {
  std::set<std::string> names;
  for (const tasks::TaskKind* task : tasks::task_kinds()) {
    for (const Option& option : option_table(*task)) {
      if (has(option)) names.insert(option.name);
    }
  }
  return fmt::format("{}", fmt::join(names, " "));
}

/// A trait that is lost refuses a resumed run, or repeats a layout that does not fit.
TEST(Commands, OptionsKeepTheirTraits) {
  EXPECT_EQ(names_where([](const Option& option) { return option.traits.on_resume == OnResume::free; }),
            "attention bucket-mib checkpoint-every collective-timeout communication-precision communicator damaged "
            "eval-on-start gemm gpu-log gradient-accumulation-steps initial-loss-scale keep "
            "loader-threads "
            "micro-batch micro-tokens mode on-save-error recipe recompute shard-size strict tf32 writers");
  EXPECT_EQ(names_where([](const Option& option) { return option.traits.on_resume == OnResume::unfinished; }),
            "export-precision keep-best precision");
  EXPECT_EQ(names_where([](const Option& option) { return option.traits.on_resume == OnResume::longer; }),
            "epochs steps");
  EXPECT_EQ(names_where([](const Option& option) { return option.traits.lays_out; }),
            "adapter batch batch-norm-group batch-per-rank dataset freeze "
            "gradient-accumulation-steps image-size labels lora-dropout lora-rank lora-targets lora-train max-length "
            "micro-batch micro-tokens mode model "
            "precision recompute shard-size stem train");
  EXPECT_EQ(names_where([](const Option& option) { return !option.traits.excludes.empty(); }),
            "adapter batch dataset extend lora-rank micro-batch micro-tokens order use-syn");
  EXPECT_EQ(names_where([](const Option& option) { return !option.traits.from_run.empty(); }),
            "adapter doc-stride export-precision long lora-alpha lora-dropout lora-rank lora-rslora lora-targets "
            "lora-train loss-on max-answer-length max-length n-best no-bos no-eos null-threshold squad text-field");
  EXPECT_EQ(names_where([](const Option& option) { return option.traits.is_shown; }),
            "batch freeze lora-rank max-length micro-batch mode model precision");
}

}  // namespace
}  // namespace mylos::app
