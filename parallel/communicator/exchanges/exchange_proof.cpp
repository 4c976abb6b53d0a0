#include "parallel/communicator/exchanges/exchange_proof.hpp"

#include "parallel/communicator/exchanges/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <type_traits>
#include <vector>

namespace mylos::parallel {
namespace {

constexpr const char* proof_label = "mylos::communicator::proof";
constexpr std::size_t long_bytes = std::size_t{5} << 20;  // NCCL's buffer has 4 MiB
constexpr std::size_t uneven_length = 10007;

template <class T>
constexpr ElementType type_of = ElementType::float32;
template <>
constexpr ElementType type_of<double> = ElementType::float64;
template <>
constexpr ElementType type_of<bfloat16> = ElementType::bfloat16;

template <class T>
constexpr const char* name_of = "float32";
template <>
constexpr const char* name_of<double> = "float64";
template <>
constexpr const char* name_of<bfloat16> = "bfloat16";

template <class T>
Buffer device_buffer(const Vector<T>& values, std::size_t count) {
  return {values.data(), count, type_of<T>, MemoryKind::device};
}

/// Element i of the array that a rank adds. Two ranks have a number that is not 0, so sums are below 256 and exact in
/// bfloat16, in any order and for any number of ranks.
struct Term {
  std::size_t rank, ranks;

  KOKKOS_INLINE_FUNCTION int operator()(std::size_t i) const {
    const std::size_t first = i % ranks, second = (first + 1 + i / 7 % (ranks - 1)) % ranks;
    if (rank == first) return 1 + static_cast<int>(i % 97);
    return rank == second ? 1 + static_cast<int>(i / 3 % 89) : 0;
  }
};

/// Element i of the sum over ranks.
struct SumOfTerms {
  KOKKOS_INLINE_FUNCTION int operator()(std::size_t i) const {
    return 2 + static_cast<int>(i % 97) + static_cast<int>(i / 3 % 89);
  }
};

/// Element i of the concatenation of all ranks' parts.
struct GatheredValue {
  KOKKOS_INLINE_FUNCTION int operator()(std::size_t i) const { return 1 + static_cast<int>((i + i / 101) % 199); }
};

/// values[i] = value(begin + i), and 0 from `count` on.
template <class T, class Value>
struct Fill {
  Vector<T> values;
  Value value;
  std::size_t begin, count;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t i) const {
    values(i) = T(i < count ? static_cast<float>(value(begin + i)) : 0.0f);
  }
};

/// Counts the elements that differ from value(begin + i), NaN among them.
template <class T, class Value>
struct CountWrong {
  Vector<T> values;
  Value value;
  std::size_t begin;

  KOKKOS_INLINE_FUNCTION void operator()(std::size_t i, std::size_t& wrong) const {
    const auto got = static_cast<double>(values(i));
    wrong += got == static_cast<double>(value(begin + i)) ? 0 : 1;
  }
};

template <class T, class Value>
void fill(const ExecutionSpace& space, const Vector<T>& values, const Value& value, std::size_t begin,
          std::size_t count) {
  Kokkos::parallel_for(proof_label, Kokkos::RangePolicy<ExecutionSpace>(space, 0, values.size()),
                       Fill<T, Value>{values, value, begin, count});
}

template <class T>
void fill_with_nan(const ExecutionSpace& space, const Vector<T>& values) {
  Kokkos::deep_copy(space, values, T(std::nanf("")));
}

/// Exchanges of elements of type T in a group of at least two ranks.
template <class T>
class Exchanges {
 public:
  Exchanges(Communicator& ranks, const ExecutionSpace& space) : ranks_(ranks), space_(space) {}

  void all_reduce() {
    std::vector<Vector<T>> sums;
    std::vector<NamedArray> arrays;
    for (const std::size_t length : lengths_) {
      sums.push_back(array<T>(length));
      fill(space_, sums.back(), Term{ranks_.rank(), ranks_.size()}, 0, length);
      arrays.push_back({device_buffer(sums.back(), length), "arrays of the proof"});
    }
    ranks_.all_reduce_coalesced(space_, arrays).wait(space_);
    for (std::size_t i = 0; i < sums.size(); ++i) expect("sums", sums[i], SumOfTerms{}, 0, lengths_[i]);
  }

  /// Sum is the type of the result.
  template <class Sum>
  void reduce_scatter() {
    std::vector<Vector<T>> wholes;
    std::vector<Vector<Sum>> parts;
    std::vector<NamedParts> arrays;
    for (const std::size_t length : lengths_) {
      const std::size_t part = part_of(length);
      wholes.push_back(array<T>(part * ranks_.size()));
      parts.push_back(part_for<Sum>(wholes.back(), part));
      fill_with_nan(space_, parts.back());
      fill(space_, wholes.back(), Term{ranks_.rank(), ranks_.size()}, 0, length);
      arrays.push_back(
          {device_buffer(parts.back(), part), device_buffer(wholes.back(), length), "arrays of the proof"});
    }
    ranks_.reduce_scatter_coalesced(space_, arrays).wait(space_);
    overwrite<Sum>(wholes);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Parts::Piece mine = divide(lengths_[i], ranks_.size()).piece(ranks_.rank(), 0, parts[i].size());
      expect("sums of parts", parts[i], SumOfTerms{}, mine.begin, mine.size);
    }
  }

  void all_gather() {
    std::vector<Vector<T>> wholes, parts;
    std::vector<NamedParts> arrays;
    for (const std::size_t length : lengths_) {
      const std::size_t part = part_of(length), begin = ranks_.rank() * part;
      wholes.push_back(array<T>(part * ranks_.size()));
      parts.push_back(part_for<T>(wholes.back(), part));
      fill_with_nan(space_, wholes.back());
      fill(space_, parts.back(), GatheredValue{}, begin, part);
      arrays.push_back(
          {device_buffer(parts.back(), part), device_buffer(wholes.back(), length), "arrays of the proof"});
    }
    ranks_.all_gather_coalesced(space_, arrays).wait(space_);
    overwrite<T>(parts);
    for (std::size_t i = 0; i < wholes.size(); ++i) {
      expect("gathered arrays", wholes[i], GatheredValue{}, 0, lengths_[i]);
    }
  }

  const std::string& wrong() const { return wrong_; }

 private:
  template <class U>
  static Vector<U> array(std::size_t length) {
    return Vector<U>(Kokkos::view_alloc(std::string(proof_label), Kokkos::WithoutInitializing), length);
  }
  /// Returns the part of an array that this rank has. That of the uneven array is in place if the types are the same.
  template <class U>
  Vector<U> part_for(const Vector<T>& whole, std::size_t part) const {
    if constexpr (std::is_same_v<U, T>) {
      if (part == part_of(uneven_length)) return slice(whole, ranks_.rank() * part, (ranks_.rank() + 1) * part);
    }
    return array<U>(part);
  }
  /// Fills the inputs with NaN that do not share memory with results of type Result.
  template <class Result>
  void overwrite(const std::vector<Vector<T>>& inputs) const {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool is_in_place = std::is_same_v<Result, T> && lengths_[i] == uneven_length;
      if (!is_in_place) fill_with_nan(space_, inputs[i]);
    }
  }
  std::size_t part_of(std::size_t length) const { return divide(length, ranks_.size()).part; }

  template <class U, class Value>
  void expect(const char* what, const Vector<U>& values, const Value& value, std::size_t begin, std::size_t count) {
    std::size_t wrong = 0;
    Kokkos::parallel_reduce(proof_label, Kokkos::RangePolicy<ExecutionSpace>(space_, 0, count),
                            CountWrong<U, Value>{values, value, begin}, wrong);
    ranks_.expect_no_failure();
    if (wrong == 0 || !wrong_.empty()) return;
    wrong_ = fmt::format("{} of {} elements of {} in {} are wrong", wrong, count, what, name_of<T>);
  }

  Communicator& ranks_;
  const ExecutionSpace& space_;
  std::array<std::size_t, 2> lengths_ = {long_bytes / sizeof(T) + 3, uneven_length};
  std::string wrong_;
};

template <class T>
std::string wrong_in(Communicator& ranks, const ExecutionSpace& space, bool sums = true) {
  Exchanges<T> exchanges(ranks, space);
  if (sums) {
    exchanges.all_reduce();
    exchanges.template reduce_scatter<T>();
    if constexpr (std::is_same_v<T, bfloat16>) exchanges.template reduce_scatter<float>();
  }
  exchanges.all_gather();
  return exchanges.wrong();
}

}  // namespace

std::string wrong_exchange(Communicator& ranks, const ExecutionSpace& space, bool sums_bfloat16) {
  if (ranks.size() < 2) return {};
  std::string wrong;
  for (const std::string& in_type : {wrong_in<float>(ranks, space), wrong_in<double>(ranks, space),
                                     wrong_in<bfloat16>(ranks, space, sums_bfloat16)}) {
    if (wrong.empty()) wrong = in_type;
  }
  return wrong;
}

double measured_bandwidth(Communicator& ranks, const ExecutionSpace& space) {
  if (ranks.size() < 2) return 0.0;
  const Vector<float> values("mylos::communicator::measured", measured_bytes / sizeof(float));
  const auto seconds_of_sum = [&] {
    const auto begin = std::chrono::steady_clock::now();
    ranks.all_reduce(space, buffer_of(values), "a measured sum").wait(space);
    space.fence();
    ranks.expect_no_failure();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  seconds_of_sum();
  const double first = seconds_of_sum(), seconds = std::min(first, seconds_of_sum());
  const auto size = static_cast<double>(ranks.size());
  return 2.0 * (size - 1.0) / size * static_cast<double>(measured_bytes) / seconds;
}

}  // namespace mylos::parallel
