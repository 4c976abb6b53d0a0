#pragma once

#include "core/base/value_bytes.hpp"
#include "parallel/communicator/communicator.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

/// Agreement among ranks on the host: small values, and errors that all ranks must see. Unless stated otherwise,
/// functions are collective and return the same on every rank.
namespace mylos::parallel {

/// An error that all ranks throw; the first rank reports it.
class SharedError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns the sum in the order described at Communicator, with the same bits on each rank.
double sum(Communicator& ranks, double value);
std::int64_t maximum(Communicator& ranks, std::int64_t value);
std::int64_t minimum(Communicator& ranks, std::int64_t value);

/// The maximum of values over ranks, whose exchange runs while the caller does other work. The exchange comes before
/// all operations that are submitted later, so waiting for it does not wait for them.
class PendingMaximum {
 public:
  /// Submits the exchange. All ranks must pass the same number of values.
  PendingMaximum(Communicator& ranks, std::span<const std::int64_t> values);
  /// Returns when the exchange has ended, even if it failed.
  ~PendingMaximum();
  PendingMaximum(const PendingMaximum&) = delete;
  PendingMaximum& operator=(const PendingMaximum&) = delete;

  /// Waits for the exchange. Returns the maximum of each value.
  std::vector<std::int64_t> wait() const;

 private:
  std::vector<std::int64_t> mine_, all_;
  Event exchange_;
};

/// Replaces `values` with their sum over ranks, element by element.
void sum_in_place(Communicator& ranks, std::span<double> values);

/// Returns each rank's value, in the order of ranks.
std::vector<std::int64_t> gather(Communicator& ranks, std::int64_t value);
std::vector<std::string> gather(Communicator& ranks, const std::string& text);
/// Returns the values of rank 0, then those of rank 1, ... All ranks must pass the same number of values.
std::vector<double> gather(Communicator& ranks, std::span<const double> values);
/// Sends the texts of all ranks to rank 0, one after the other, and calls `take` there with their pieces, in order.
/// Rank 0 holds one piece at a time, of at most `most` bytes. Time in `take` counts as FileWork. If `take` throws, it
/// is not called again, and every rank throws SharedError with its message after all texts have been sent.
void gather_in_pieces(Communicator& ranks, std::string_view text, const std::function<void(std::string_view)>& take,
                      std::size_t most = std::size_t{1} << 20);

/// Returns the text of the lowest rank whose text is not empty, which is named after it unless all have this text;
/// empty if there is none.
std::string first_text(Communicator& ranks, const std::string& text);

/// Replaces `data` with rank 0's, which has the same size. `what` names it in messages.
void broadcast_in_place(Communicator& ranks, std::span<std::byte> data, const std::string& what);
/// Returns rank 0's text.
std::string broadcast(Communicator& ranks, const std::string& text);

/// As on_first_rank, for work that returns the bytes of its result.
std::string bytes_on_first_rank(Communicator& ranks, const std::function<std::string()>& work);

/// Runs `work` on rank 0 only and returns its result on every rank. The result is void or of a type that
/// value_bytes.hpp supports. If `work` throws, every rank throws SharedError with its message, so no rank hangs. Used
/// where only one rank should access the file system. Counts as FileWork.
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

/// Runs `work` on every rank. If any rank throws, every rank throws SharedError with the message of the lowest failing
/// rank, which is named unless all ranks throw the same message. `work` itself must not be collective.
void on_every_rank(Communicator& ranks, const std::function<void()>& work);

}  // namespace mylos::parallel
