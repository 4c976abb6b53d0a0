#pragma once

#include "core/base/value_bytes.hpp"
#include "parallel/communicator/communicator.hpp"

#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// What ranks settle among themselves on the host: small values, and errors that all of them must see. Every function
/// is collective and returns the same on every rank,
/// unless it says otherwise.
namespace mylos::parallel {

/// An error that every rank has: the first one tells it.
class SharedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Sum in the order of Communicator, the same bits on each rank.
double sum(Communicator& ranks, double value);
std::int64_t maximum(Communicator& ranks, std::int64_t value);
std::int64_t minimum(Communicator& ranks, std::int64_t value);
/// values becomes the sum over ranks, element by element.
void sum_in_place(Communicator& ranks, std::span<double> values);

/// What each rank gave, in the order of ranks.
std::vector<std::int64_t> gather(Communicator& ranks, std::int64_t value);
std::vector<std::string> gather(Communicator& ranks, const std::string& text);
/// Equal counts on every rank: values of rank 0, then of rank 1, ...
std::vector<double> gather(Communicator& ranks, std::span<const double> values);
/// The texts of all ranks on rank 0; empty on the others. Each is sent once, in pieces.
std::vector<std::string> gather_on_first_rank(Communicator& ranks, const std::string& text);

/// Rank 0's text.
std::string broadcast(Communicator& ranks, const std::string& text);

/// As on_first_rank, for work that returns the bytes of its result.
std::string bytes_on_first_rank(Communicator& ranks, const std::function<std::string()>& work);

/// Runs `work` on rank 0 only and returns its result on every rank: nothing, or a value that value_bytes.hpp supports.
/// If it throws, every rank throws SharedError with its message: one rank touches the file system, and none is left
/// waiting. Counts as FileWork.
template <class Work>
std::invoke_result_t<const Work&> on_first_rank(Communicator& ranks, const Work& work) {
  using Result = std::invoke_result_t<const Work&>;
  if constexpr (std::is_void_v<Result>) {
    bytes_on_first_rank(ranks, [&] {
      work();
      return std::string();
    });
  } else {
    return value_of_bytes<Result>(bytes_on_first_rank(ranks, [&] { return bytes_of_value(work()); }));
  }
}

/// Runs `work` on every rank. Where it throws on any, every rank throws SharedError with the message of the lowest one,
/// which is named unless all ranks throw the same. `work` itself is not collective.
void on_every_rank(Communicator& ranks, const std::function<void()>& work);

}  // namespace mylos::parallel
