#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// The labels of a model, and those of data.
namespace mylos::tasks {

/// The names of `count` labels (0: as many as there are) that begin with `names`; the others are LABEL_2, ... Errors:
/// std::runtime_error where there are fewer than `names`; `data` names what has those.
std::vector<std::string> name_labels(std::size_t count, const std::vector<std::string>& names, const std::string& data);

/// Advice where the data has other labels than the model and the model cannot change.
inline constexpr const char* other_data = "use data of the model's labels";

/// The model's number for each label of the data: by name where the model has all names, by number where it has none of
/// them and as many labels. Errors: std::runtime_error where neither holds, naming both and what to do: `advice`.
std::vector<std::int32_t> match_labels(const std::vector<std::string>& data_labels, const std::string& data,
                                       const std::vector<std::string>& model_labels, const std::string& model,
                                       const std::string& advice = other_data);

}  // namespace mylos::tasks
