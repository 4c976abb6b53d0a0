#include "app/options/settings.hpp"

#include "app/options/parse.hpp"
#include "core/base/files/json.hpp"
#include "core/base/options/option_values.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace mylos::app {
namespace {

std::optional<std::string> last_value(const std::vector<Setting>& settings, std::string_view name) {
  const auto sets = [&](const Setting& each) { return each.peer == nullptr && each.is_about(name); };
  const auto found = std::find_if(settings.rbegin(), settings.rend(), sets);
  return found == settings.rend() ? std::nullopt : std::optional(found->value);
}

/// Returns whether a setting behind `peers` replaces it: the same option of a peer, or the option that it renames.
bool is_repeated(const Setting& peers, const Setting* begin, const Setting* end) {
  return std::any_of(begin, end, [&](const Setting& later) {
    return later.peer == peers.peer || (peers.peer->is_alias() && later.is_about(peers.peer->option));
  });
}

OptionTexts meaning_of(const Setting& setting, const PeerSurroundings& around) {
  const PeerOption& peer = *setting.peer;
  if (peer.meaning == nullptr) {
    const auto truth = parse_truth(setting.value);
    if (!truth) refuse_value(setting.shown, setting.value, setting.option->expects);
    return *truth ? OptionTexts{{std::string(peer.option), std::string(peer.value)}} : OptionTexts();
  }
  const std::vector<std::string>& choices = setting.option->choices;
  const bool is_wrong = !peer.values.empty() && std::ranges::find(choices, setting.value) == choices.end();
  if (is_wrong) refuse_value(setting.shown, setting.value, setting.option->expects);
  return peer.meaning(setting.value, around);
}

/// Returns the value as run.json has it; as it is if the option is not in there, or the value is wrong.
std::string recorded_value(const Setting& setting, Arguments arguments) {
  const Option& option = *setting.option;
  const bool has_value = option.print && option.parse(arguments, setting.value);
  return has_value ? plain_text(option.print(arguments)) : setting.value;
}

/// Refuses a peer's option beside another name of what it sets. A switch may be repeated in other words.
void check_spellings(const std::vector<Setting>& settings, bool is_typed, const Settings& all,
                     const Arguments& defaults) {
  for (const Setting& one : settings) {
    const auto is_same = [&](const Setting& each) { return each.option == one.option; };
    if (one.peer == nullptr || (!is_typed && std::ranges::any_of(all.typed, is_same))) continue;
    for (const Setting& other : settings) {
      if (!is_same(other) || other.peer == one.peer) continue;
      if (one.peer->is_switch && recorded_value(one, defaults) == recorded_value(other, defaults)) continue;
      const std::string_view name = other.peer == nullptr ? std::string_view(other.option->name) : other.peer->name;
      const bool is_first = other.peer == nullptr || one.peer->name < name;
      refuse_both(is_first ? one.peer->name : name, is_first ? name : one.peer->name, is_typed);
    }
  }
}

}  // namespace

bool Setting::is_about(std::string_view name) const {
  return option != nullptr && (option->name == name || (peer != nullptr && peer->option == name));
}

void translate(Settings& settings, const Arguments& defaults, std::vector<std::string>& remarks) {
  PeerSurroundings around;
  around.typed = [&](std::string_view name) { return last_value(settings.typed, name); };
  around.configured = [&](std::string_view name) { return last_value(settings.configured, name); };
  around.remark = [&](std::string text) { remarks.push_back(std::move(text)); };
  around.leave_out = [&](std::string_view name, bool is_typed) {
    if (!is_typed && last_value(settings.configured, name)) settings.left_out.emplace_back(name);
    for (Setting& each : is_typed ? settings.typed : settings.configured) {
      if (each.peer == nullptr && each.is_about(name)) each.option = nullptr;
    }
  };
  std::map<const Setting*, OptionTexts> meanings;
  for (std::vector<Setting>* list : {&settings.configured, &settings.typed}) {
    around.is_typed = list == &settings.typed;
    const Setting *end = list->data() + list->size(), *typed = settings.typed.data();
    for (const Setting& each : *list) {
      if (each.peer == nullptr || is_repeated(each, &each + 1, end)) continue;
      if (!around.is_typed && is_repeated(each, typed, typed + settings.typed.size())) continue;
      meanings[&each] = meaning_of(each, around);
    }
  }
  for (std::vector<Setting>* list : {&settings.configured, &settings.typed}) {
    std::vector<Setting> ours;
    for (const Setting& each : *list) {
      if (each.option != nullptr && each.peer == nullptr) ours.push_back(each);
      for (const auto& [name, value] : meanings[&each]) {
        ours.push_back(
            {find_option(name, *defaults.task), value, each.shown, each.peer->is_alias() ? nullptr : each.peer});
      }
    }
    *list = std::move(ours);
  }
  for (std::vector<Setting>* list : {&settings.configured, &settings.typed}) {
    check_spellings(*list, list == &settings.typed, settings, defaults);
  }
}

}  // namespace mylos::app
