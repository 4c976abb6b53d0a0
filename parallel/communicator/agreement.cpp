#include "parallel/communicator/agreement.hpp"

#include "core/base/error.hpp"
#include "parallel/communicator/file_work.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <new>
#include <numeric>

namespace mylos::parallel {
namespace {

template <class T>
inline constexpr ElementType element_type = ElementType::byte;
template <>
inline constexpr ElementType element_type<double> = ElementType::float64;
template <>
inline constexpr ElementType element_type<std::int64_t> = ElementType::int64;

template <class T>
Buffer host_buffer(T* data, std::size_t count) {
  return {data, count, element_type<T>, MemoryKind::host};
}

/// Submits the exchange that gathers `count` elements of each rank in `all`.
template <class T>
Event begin_gather(Communicator& ranks, T* mine, std::size_t count, std::vector<T>& all) {
  const ExecutionSpace space;
  all.resize(count * ranks.size());
  return ranks.all_gather(space, host_buffer(mine, count), host_buffer(all.data(), all.size()), "agreement");
}

template <class T>
std::vector<T> gather_all(Communicator& ranks, T* mine, std::size_t count) {
  std::vector<T> all;
  begin_gather(ranks, mine, count, all).wait(ExecutionSpace());
  return all;
}

/// Returns the message of the exception that `work` throws; empty if it throws none.
template <class Work>
std::string error_of(const Work& work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& error) {
    const std::string message = error.what();
    return message.empty() ? "an error without a message" : message;
  }
  return {};
}

}  // namespace

double sum(Communicator& ranks, double value) {
  sum_in_place(ranks, {&value, 1});
  return value;
}

std::int64_t maximum(Communicator& ranks, std::int64_t value) {
  return PendingMaximum(ranks, {&value, 1}).wait().front();
}

std::int64_t minimum(Communicator& ranks, std::int64_t value) { return -maximum(ranks, -value); }

PendingMaximum::PendingMaximum(Communicator& ranks, std::span<const std::int64_t> values)
    : mine_(values.begin(), values.end()), exchange_(begin_gather(ranks, mine_.data(), mine_.size(), all_)) {}

PendingMaximum::~PendingMaximum() { exchange_.wait_for_its_end(); }

std::vector<std::int64_t> PendingMaximum::wait() const {
  exchange_.wait(ExecutionSpace());
  std::vector<std::int64_t> most = mine_;
  for (std::size_t i = 0; i < all_.size(); ++i) most[i % most.size()] = std::max(most[i % most.size()], all_[i]);
  return most;
}

void sum_in_place(Communicator& ranks, std::span<double> values) {
  const ExecutionSpace space;
  ranks.all_reduce(space, host_buffer(values.data(), values.size()), "agreement").wait(space);
}

std::vector<std::int64_t> gather(Communicator& ranks, std::int64_t value) { return gather_all(ranks, &value, 1); }

std::vector<std::string> gather(Communicator& ranks, const std::string& text) {
  const std::vector<std::int64_t> sizes = gather(ranks, static_cast<std::int64_t>(text.size()));
  const auto longest = static_cast<std::size_t>(*std::max_element(sizes.begin(), sizes.end()));
  std::string padded = text;
  padded.resize(longest);
  const std::vector<char> all = gather_all(ranks, padded.data(), longest);
  std::vector<std::string> texts;
  for (std::size_t rank = 0; rank < sizes.size(); ++rank) {
    texts.emplace_back(all.data() + rank * longest, static_cast<std::size_t>(sizes[rank]));
  }
  return texts;
}

std::vector<double> gather(Communicator& ranks, std::span<const double> values) {
  std::vector<double> mine(values.begin(), values.end());
  return gather_all(ranks, mine.data(), mine.size());
}

void gather_in_pieces(Communicator& ranks, std::string_view text, const std::function<void(std::string_view)>& take,
                      std::size_t most) {
  const ExecutionSpace space;
  const std::vector<std::int64_t> sizes = gather(ranks, static_cast<std::int64_t>(text.size()));
  std::string piece, error;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const auto size = static_cast<std::size_t>(sizes[rank]);
    for (std::size_t begin = 0; begin < size; begin += most) {
      // A transfer needs equal sizes on its two ranks only; the arrays of the other ranks are not accessed.
      if (rank == ranks.rank()) piece = text.substr(begin, most);
      if (ranks.rank() == 0) piece.resize(std::min(most, size - begin));
      ranks.transfer(space, host_buffer(piece.data(), piece.size()), rank, 0, "agreement").wait(space);
      if (ranks.rank() != 0 || !error.empty()) continue;
      const FileWork writing;
      error = error_of([&] { take(piece); });
    }
  }
  error = broadcast(ranks, error);
  if (!error.empty()) throw SharedError(error);
}

void broadcast_in_place(Communicator& ranks, std::span<std::byte> data, const std::string& what) {
  const ExecutionSpace space;
  ranks.broadcast(space, host_buffer(data.data(), data.size()), 0, what).wait(space);
}

std::string broadcast(Communicator& ranks, const std::string& text) {
  auto size = static_cast<std::int64_t>(text.size());
  broadcast_in_place(ranks, std::as_writable_bytes(std::span(&size, 1)), "agreement");
  std::string given = text;
  given.resize(static_cast<std::size_t>(size));
  broadcast_in_place(ranks, std::as_writable_bytes(std::span(given)), "agreement");
  return given;
}

std::string bytes_on_first_rank(Communicator& ranks, const std::function<std::string()>& work) {
  std::string result, error;
  if (ranks.rank() == 0) {
    const FileWork alone;
    error = error_of([&] { result = work(); });
  }
  error = broadcast(ranks, error);
  if (!error.empty()) throw SharedError(error);
  return broadcast(ranks, result);
}

std::string first_text(Communicator& ranks, const std::string& text) {
  const std::vector<std::string> texts = gather(ranks, text);
  const auto first = std::ranges::find_if(texts, [](const std::string& other) { return !other.empty(); });
  if (first == texts.end()) return {};
  const bool all_say_so = std::ranges::count(texts, *first) == std::ssize(texts);
  return all_say_so ? *first : fmt::format("{} (rank {})", *first, first - texts.begin());
}

void on_every_rank(Communicator& ranks, const std::function<void()>& work) {
  const std::string error = error_of(work);
  if (maximum(ranks, error.empty() ? 0 : 1) == 0) return;
  const std::vector<std::string> errors = gather(ranks, error);
  if (std::ranges::all_of(errors, [&](const std::string& other) { return other == errors.front(); })) {
    throw SharedError(errors.front());
  }
  const auto first = std::ranges::find_if(errors, [](const std::string& other) { return !other.empty(); });
  throw SharedError(fmt::format("rank {}: {}", first - errors.begin(), *first));
}

}  // namespace mylos::parallel
