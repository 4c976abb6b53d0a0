#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

/// The labels of a model and of data.
namespace mylos::tasks {

/// Returns "5 labels (cats, dogs, mice, ...)", with the first `most` names.
std::string labels_text(const std::vector<std::string>& labels, std::size_t most = 3);

/// Returns `count` label names (0: as many as `names`) that begin with `names`; the rest are called LABEL_2, ...
/// Errors: std::runtime_error if `count` is smaller than the number of `names`; the message names their source, `data`.
std::vector<std::string> name_labels(std::size_t count, const std::vector<std::string>& names, const std::string& data);

/// Advice if the labels of the data differ from the model's and the model cannot change.
inline constexpr const char* other_data = "use data of the model's labels";

/// Returns the model's label for each label of the data. Matches by name if the model has all names, and by number if
/// it has none of them and the same number of labels. Errors: std::runtime_error otherwise, naming both and giving
/// `advice`.
std::vector<std::int32_t> match_labels(const std::vector<std::string>& data_labels, const std::string& data,
                                       const std::vector<std::string>& model_labels, const std::string& model,
                                       const std::string& advice = other_data);

}  // namespace mylos::tasks
