#include "data/huggingface/other_architectures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace mylos::data {
namespace {

struct Architecture {
  std::string_view prefix;  ///< start of the model name, without its owner and in lower case
  std::string_view title;   ///< with its article
};

constexpr std::array architectures = {
    Architecture{"roberta-", "a RoBERTa"},
    Architecture{"distilroberta-", "a RoBERTa"},
    Architecture{"xlm-roberta-", "an XLM-RoBERTa"},
    Architecture{"camembert-", "a CamemBERT"},
    Architecture{"distilbert-", "a DistilBERT"},
    Architecture{"mobilebert-", "a MobileBERT"},
    Architecture{"modernbert-", "a ModernBERT"},
    Architecture{"albert-", "an ALBERT"},
    Architecture{"deberta-", "a DeBERTa"},
    Architecture{"mdeberta-", "a DeBERTa"},
    Architecture{"electra-", "an ELECTRA"},
    Architecture{"longformer-", "a Longformer"},
    Architecture{"bigbird-", "a BigBird"},
    Architecture{"mpnet-", "an MPNet"},
    Architecture{"xlnet-", "an XLNet"},
    Architecture{"bart-", "a BART"},
    Architecture{"t5-", "a T5"},
    Architecture{"flan-t5-", "a T5"},
    Architecture{"gpt2", "a GPT-2"},
};

}  // namespace

std::string architecture_obstacle(std::string_view name) {
  std::string bare(name.substr(name.find('/') + 1));  // npos + 1 is 0: a name without an owner
  std::ranges::transform(bare, bare.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const auto known = std::ranges::find_if(
      architectures, [&](const Architecture& architecture) { return bare.starts_with(architecture.prefix); });
  if (known == architectures.end()) return {};
  return fmt::format(
      "{} is the name of {} model; BERT models, Llamas and ResNets are supported, such as bert-base-uncased", name,
      known->title);
}

}  // namespace mylos::data
