#include "app/options/recipes.hpp"

#include "app/options/options.hpp"
#include "app/options/parse.hpp"
#include "app/options/task_choice.hpp"
#include "core/base/option_values.hpp"
#include "core/base/printable.hpp"
#include "core/base/usage_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace mylos::app {
namespace {

struct Recipe {
  std::string_view name;
  std::string_view task;      ///< the only task that it trains
  std::string_view origin;    ///< the program that it comes from
  std::string_view settings;  ///< as typed on a command line
  std::string_view differs;   ///< what still differs from that program, in one line; empty: nothing known
};

constexpr std::string_view listing = "list";  // --recipe list
constexpr std::string_view questions = "question-answering", documents = "language-modeling",
                           images = "image-classification";
constexpr std::string_view by_group =
    "BatchNorm normalises groups of images (--batch-norm-group), not the batch of a process";

// torch.optim.AdamW decays all tensors by 0.01. None of the programs but Trainer's clips gradients.
constexpr std::array recipe_table = {
    Recipe{"lightning-fsdp-squad", questions, "BERT on SQuAD v1.1 with PyTorch Lightning and FSDP",
           "--epochs 3 --batch-per-rank 16 --learning-rate 3e-5 --weight-decay 0.01 --decay-all --schedule constant "
           "--clip 0 --max-length 384 --long truncate --precision half --mode sharded",
           "parameters and activations are stored in half precision with float master weights, where the program "
           "computes by autocast"},
    Recipe{"lightning-ddp-squad", questions, "BERT on 10,000 questions of SQuAD v1.1 with PyTorch Lightning and DDP",
           "--epochs 4 --batch-per-rank 4 --learning-rate 3e-5 --weight-decay 0.01 --decay-all --schedule constant "
           "--clip 0 --train-limit 10000 --dev-limit 500 --best-by loss --mode replicated",
           "the best model is selected after each epoch"},
    Recipe{"pauls-squad2", questions, "BERT on SQuAD v2.0 with PyTorch Lightning, and DDP, FSDP or DeepSpeed",
           "--squad 2.0 --epochs 2 --batch-per-rank 8 --learning-rate 5e-5 --adam-epsilon 1e-6 --weight-decay 0 "
           "--schedule constant --clip 0 --long truncate --best-by loss",
           "on GPUs from Ampere on, its matrix products are those of --tf32"},
    Recipe{"ncar-ddp", images, "ResNets on CIFAR-10 or random images with DDP (main.py)",
           "--epochs 100 --batch-per-rank 256 --optimizer sgd --learning-rate 0.1 --momentum 0.9 --weight-decay 1e-5 "
           "--decay-all --schedule constant --clip 0 --augment crop-flip --eval-every 10epochs --mode replicated",
           by_group},
    Recipe{"ncar-fsdp", images, "ResNet-18 for small images on CIFAR-10 with FSDP (resnet_fsdp_training.py)",
           "--epochs 10 --batch-per-rank 64 --optimizer sgd --learning-rate 0.01 --momentum 0.9 --weight-decay 5e-4 "
           "--decay-all --schedule constant --clip 0 --augment crop-flip --stem cifar --mode sharded",
           by_group},
    Recipe{"chess-fsdp", documents, "CodeLlama on games of chess with FSDP (chess_finetune.py)",
           "--epochs 1 --batch-size-per-device 1 --gradient-accumulation-steps 8 --learning-rate 1e-5 "
           "--weight-decay 0.01 --decay-all --schedule linear --warmup 0.1 --clip 0 --max-length 512 --long truncate "
           "--precision bfloat16 --mode sharded",
           "parameters and activations are stored in bfloat16 with float master weights, where the program computes "
           "by autocast"},
    Recipe{"run_qa", questions, "transformers' run_qa.py",
           "--epochs 3 --batch-per-rank 8 --learning-rate 5e-5 --weight-decay 0 --schedule linear --warmup 0 --clip 1 "
           "--max-length 384 --doc-stride 128",
           ""},
    Recipe{"run_clm", documents, "transformers' run_clm.py",
           "--epochs 3 --batch-per-rank 8 --learning-rate 5e-5 --weight-decay 0 --schedule linear --warmup 0 --clip 1 "
           "--max-length 1024",
           "each document begins a sample, where run_clm joins all documents and cuts them into blocks"},
};

const Recipe* known_recipe(std::string_view name) {
  const auto found = std::ranges::find(recipe_table, name, &Recipe::name);
  return found == recipe_table.end() ? nullptr : &*found;
}

/// Errors: UsageError if there is no such recipe.
const Recipe& find_recipe(std::string_view name) {
  const Recipe* found = known_recipe(name);
  if (found != nullptr) return *found;
  throw UsageError(fmt::format("--recipe {}: there is no such recipe{} (mylos train --recipe list)", printable(name),
                               suggestion(name, recipe_names(), "")));
}

/// Calls `use` with the option and the value of each setting.
template <class Use>
void for_each_setting(const Recipe& recipe, const tasks::TaskKind& task, const Use& use) {
  const std::vector<std::string> words = split(recipe.settings, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Option& option = *find_option(words[i].substr(2), task);
    use(option, option.is_switch() ? "true" : words[++i]);
  }
}

}  // namespace

std::vector<std::string> recipe_names() {
  std::vector<std::string> names;
  for (const Recipe& recipe : recipe_table) names.emplace_back(recipe.name);
  names.emplace_back(listing);
  return names;
}

const tasks::TaskKind* task_of_recipe(std::string_view name) {
  const Recipe* found = known_recipe(name);
  return found == nullptr ? nullptr : tasks::find_task_kind(found->task);
}

bool asks_for_recipes(std::span<const std::string> words) { return typed_value_of(words, "recipe") == listing; }

std::string list_of_recipes() {
  std::string text;
  for (const Recipe& recipe : recipe_table) {
    text += fmt::format("{}: {}\n  {}\n", recipe.name, recipe.origin, recipe.settings);
    if (!recipe.differs.empty()) text += fmt::format("  differs: {}\n", recipe.differs);
  }
  return text;
}

void apply_recipe(std::string_view name, const Command& command, const std::function<bool(std::string_view)>& is_given,
                  Arguments& arguments) {
  const Recipe& recipe = find_recipe(name);
  if (recipe.task != arguments.task->name()) {
    throw UsageError(fmt::format("--recipe {} belongs to --task {}, and this is a run of {}", name, recipe.task,
                                 arguments.task->title()));
  }
  std::string taken;
  for_each_setting(recipe, *arguments.task, [&](const Option& option, const std::string& value) {
    const auto& [needed, choice, why] = option.traits.needs;
    const bool is_without = !needed.empty() && choice.empty() && !is_given(needed);
    if (is_without || is_given(option.name) || !has_option(command, option)) return;
    set_option(arguments, option, value, fmt::format("--recipe {}: {}", name, option.name));
    arguments.sources.configured.insert(option.name);
    taken += fmt::format(" --{}{}", option.name, option.is_switch() ? "" : " " + value);
  });
  arguments.remarks.push_back(fmt::format("--recipe {} sets{}", name, taken));
  if (!recipe.differs.empty()) arguments.remarks.push_back(fmt::format("--recipe {}: {}", name, recipe.differs));
}

}  // namespace mylos::app
