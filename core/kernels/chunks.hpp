#pragma once

#include "core/kernels/team.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>

/// Loops in which a device thread processes adjacent elements in accesses of 16 bytes, the widest available. This
/// saturates memory with few threads and few instructions. Host threads process one element after the other in loops
/// that vectorise.
namespace mylos {

inline constexpr std::size_t access_bytes = 16;

/// The data of one access.
struct alignas(access_bytes) Access {
  std::uint32_t word[4];
};

/// Adjacent elements held by a thread, with two 16-bit elements per register. They are 16-byte aligned in memory.
template <class T, std::size_t width>
struct Chunk {
  static constexpr std::size_t count = width * sizeof(T) / access_bytes;
  static constexpr unsigned per_word = sizeof(std::uint32_t) / sizeof(T);
  static_assert(width * sizeof(T) % access_bytes == 0 && std::endian::native == std::endian::little);

  Access part[count];

  KOKKOS_FORCEINLINE_FUNCTION void load(const T* from) {
    MYLOS_UNROLLED
    for (std::size_t i = 0; i < count; ++i) {
      KOKKOS_IF_ON_DEVICE((part[i] = reinterpret_cast<const Access*>(from)[i];))
      KOKKOS_IF_ON_HOST((std::memcpy(&part[i], checked(from + i * (width / count)), access_bytes);))
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void store(T* to) const {
    MYLOS_UNROLLED
    for (std::size_t i = 0; i < count; ++i) {
      KOKKOS_IF_ON_DEVICE((reinterpret_cast<Access*>(to)[i] = part[i];))
      KOKKOS_IF_ON_HOST((std::memcpy(const_cast<void*>(checked(to + i * (width / count))), &part[i], access_bytes);))
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void load_any(const T* from, bool aligned) {
    if (aligned) return load(from);
    MYLOS_UNROLLED
    for (unsigned j = 0; j < width; ++j) set(j, from[j]);
  }
  /// Aborts on misaligned memory, as a device would.
  static const void* checked(const T* memory) {
    if (reinterpret_cast<std::uintptr_t>(memory) % access_bytes == 0) return memory;
    Kokkos::abort("a chunk does not begin at a multiple of 16 bytes");
  }

  KOKKOS_FORCEINLINE_FUNCTION T operator[](unsigned j) const {
    const std::uint32_t word = part[j / (4 * per_word)].word[j / per_word % 4];
    if constexpr (per_word == 1) {
      return Kokkos::bit_cast<T>(word);
    } else {
      return Kokkos::bit_cast<T>(static_cast<std::uint16_t>(word >> (16 * (j % 2))));
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void set(unsigned j, T value) {
    std::uint32_t& word = part[j / (4 * per_word)].word[j / per_word % 4];
    if constexpr (per_word == 1) {
      word = Kokkos::bit_cast<std::uint32_t>(value);
    } else {
      const std::uint32_t bits = Kokkos::bit_cast<std::uint16_t>(value);
      word = j % 2 == 0 ? (word & 0xffff0000u) | bits : (word & 0xffffu) | bits << 16;
    }
  }
  /// Sets all elements to rounded values.
  KOKKOS_FORCEINLINE_FUNCTION void round(const float (&values)[width]) {
    MYLOS_UNROLLED
    for (unsigned j = 0; j < width; j += per_word) {
      std::uint32_t& word = part[j / (4 * per_word)].word[j / per_word % 4];
      if constexpr (per_word == 1) {
        word = Kokkos::bit_cast<std::uint32_t>(values[j]);
      } else {
        word = rounded_pair<T>(values[j], values[j + 1]);
      }
    }
  }
};

/// A single element, for arrays that are not aligned.
template <class T>
struct Chunk<T, 1> {
  T value;

  KOKKOS_FORCEINLINE_FUNCTION void load(const T* from) { value = *from; }
  KOKKOS_FORCEINLINE_FUNCTION void store(T* to) const { *to = value; }
  KOKKOS_FORCEINLINE_FUNCTION T operator[](unsigned) const { return value; }
  KOKKOS_FORCEINLINE_FUNCTION void set(unsigned, T element) { value = element; }
};

/// Marks an array as write-only in a loop. A const T* is read, a T* is read and written, a Written<T> is only written,
/// and an Absent<T> is neither: it takes the place of an array that some variants of a loop do not have.
template <class T>
struct Written {
  T* data;
};
template <class T>
struct Absent {};

template <class T>
KOKKOS_FORCEINLINE_FUNCTION Written<T> written(T* data) {
  return {data};
}

template <class T>
KOKKOS_FORCEINLINE_FUNCTION T* pointer_of(T* array) {
  return array;
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T* pointer_of(const Written<T>& array) {
  return array.data;
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T* pointer_of(const Absent<T>&) {
  return nullptr;
}

/// Returns element `i`; that of an absent array is zero.
template <class Array>
KOKKOS_FORCEINLINE_FUNCTION auto& element_of(const Array& array, std::size_t i) {
  return pointer_of(array)[i];
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T element_of(const Absent<T>&, std::size_t) {
  return T(0.0f);
}

/// Returns the array starting at element `begin`.
template <class T>
KOKKOS_FORCEINLINE_FUNCTION T* from_element(T* array, std::size_t begin) {
  return array + begin;
}
template <class T>
KOKKOS_FORCEINLINE_FUNCTION Written<T> from_element(const Written<T>& array, std::size_t begin) {
  return {array.data + begin};
}

template <class Array>
struct ArrayUse;
template <class T>
struct ArrayUse<T*> {
  using Element = std::remove_const_t<T>;
  static constexpr bool reads = true, writes = !std::is_const_v<T>;
};
template <class T>
struct ArrayUse<Written<T>> {
  using Element = T;
  static constexpr bool reads = false, writes = true;
};

template <class T>
struct ArrayUse<Absent<T>> {
  using Element = T;
  static constexpr bool reads = false, writes = false;
};

/// Returns `array`, or an absent one.
template <bool is_present, class Array>
KOKKOS_FORCEINLINE_FUNCTION auto if_present(const Array& array) {
  if constexpr (is_present) {
    return array;
  } else {
    return Absent<typename ArrayUse<Array>::Element>{};
  }
}

/// Elements per chunk in a loop over these arrays: 16 bytes of the smallest element type.
template <class... Arrays>
inline constexpr std::size_t chunk_width = access_bytes / std::min({sizeof(typename ArrayUse<Arrays>::Element)...});

/// Chunks of each array that a thread reads ahead: two if at most two arrays are read.
template <class... Arrays>
inline constexpr int chunks_ahead = (0 + ... + (ArrayUse<Arrays>::reads ? 1 : 0)) < 3 ? 2 : 1;

/// Returns whether all arrays are 16-byte aligned. Null arrays count as aligned.
template <class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION bool are_aligned(const Arrays&... arrays) {
  return ((reinterpret_cast<std::uintptr_t>(pointer_of(arrays)) | ...) & (access_bytes - 1)) == 0;
}

/// Returns the number of elements, of n, before the first at which all arrays are 16-byte aligned; n if there is none.
template <class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION std::size_t elements_before_access(std::size_t n, const Arrays&... arrays) {
  std::size_t first = 0;
  const auto take = [&](const auto& array) {
    const std::size_t bytes = (0 - reinterpret_cast<std::uintptr_t>(pointer_of(array))) % access_bytes;
    first = Kokkos::max(first, bytes / sizeof(*pointer_of(array)));
  };
  (take(arrays), ...);
  return first < n && are_aligned(from_element(arrays, first)...) ? first : n;
}

/// The chunks of an array that a thread holds between reading and writing: first, first + stride ... below `end`.
template <class Array, std::size_t width, int count>
struct HeldChunks {
  using Use = ArrayUse<Array>;
  Array array;
  Chunk<typename Use::Element, width> chunk[count] = {};
  typename Use::Element element = {};  ///< the element being processed

  KOKKOS_FORCEINLINE_FUNCTION HeldChunks(const Array& from, std::size_t first, std::size_t stride, std::size_t end)
      : array(from) {
    if constexpr (Use::reads) {
      MYLOS_UNROLLED
      for (int k = 0; k < count; ++k) {
        const std::size_t at = first + static_cast<std::size_t>(k) * stride;
        if (at < end) chunk[k].load(pointer_of(array) + at * width);
      }
    }
  }
  KOKKOS_FORCEINLINE_FUNCTION void take(int k, unsigned j) {
    if constexpr (Use::reads) element = chunk[k][j];
  }
  KOKKOS_FORCEINLINE_FUNCTION void put(int k, unsigned j) {
    if constexpr (Use::writes) chunk[k].set(j, element);
  }
  KOKKOS_FORCEINLINE_FUNCTION void store(int k, std::size_t at) const {
    if constexpr (Use::writes) chunk[k].store(pointer_of(array) + at * width);
  }
};

/// Calls body(position in the chunk, element...) on chunks already read. All chunks are read before the first is
/// written.
template <std::size_t width, int count, class Body, class... Held>
KOKKOS_FORCEINLINE_FUNCTION void map_held(const Body& body, std::size_t first, std::size_t stride, std::size_t end,
                                          Held&&... held) {
  MYLOS_UNROLLED
  for (int k = 0; k < count; ++k) {
    const std::size_t at = first + static_cast<std::size_t>(k) * stride;
    if (at >= end) continue;
    MYLOS_UNROLLED
    for (unsigned j = 0; j < width; ++j) {
      (held.take(k, j), ...);
      body(j, held.element...);
      (held.put(k, j), ...);
    }
    (held.store(k, at), ...);
  }
}

/// Calls body(element of each array ...) for the first n elements of the arrays, in any order. An element that is both
/// read and written must not be in another array.
template <class Body, class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION void team_map(const HostTeam& team, std::size_t n, const Body& body,
                                          const Arrays&... arrays) {
  team_for(team, n, [=](std::size_t i) { body(pointer_of(arrays)[i]...); });
}

/// Works in chunks if all arrays are aligned.
template <class Team, class Body, class... Arrays>
KOKKOS_FORCEINLINE_FUNCTION void team_map(const Team& team, std::size_t n, const Body& body, const Arrays&... arrays) {
  constexpr std::size_t width = chunk_width<Arrays...>;
  constexpr int at_once = chunks_ahead<Arrays...>;
  const std::size_t whole = are_aligned(arrays...) ? n / width : 0;
  const auto stride = static_cast<std::size_t>(team.team_size());
  for (auto first = static_cast<std::size_t>(team.team_rank()); first < whole; first += at_once * stride) {
    map_held<width, at_once>([&](unsigned, auto&... element) { body(element...); }, first, stride, whole,
                             HeldChunks<Arrays, width, at_once>(arrays, first, stride, whole)...);
  }
  const std::size_t rest = whole * width;
  team_for(team, n - rest, [=](std::size_t i) { body(pointer_of(arrays)[rest + i]...); });
}

/// Returns the sum of term(element) over the first n elements of an array, on all threads of the team.
template <class Real, class T, class Term>
KOKKOS_FORCEINLINE_FUNCTION Real team_map_sum(const HostTeam& team, std::size_t n, const Term& term, const T* array) {
  return team_sum<Real>(team, n, [=](std::size_t i) { return term(array[i]); });
}

/// A thread reads four chunks ahead. The result's bits do not depend on the array's alignment.
template <class Real, class Team, class T, class Term>
KOKKOS_FORCEINLINE_FUNCTION Real team_map_sum(const Team& team, std::size_t n, const Term& term, const T* array) {
  constexpr std::size_t width = access_bytes / sizeof(T), ahead = 4;
  const auto stride = static_cast<std::size_t>(team.team_size()), mine = static_cast<std::size_t>(team.team_rank());
  const bool aligned = are_aligned(array);
  const std::size_t whole = n / width;
  Real sums[1] = {};
  for (std::size_t first = mine; first < whole; first += ahead * stride) {
    Chunk<T, width> read[ahead] = {};
    MYLOS_UNROLLED
    for (std::size_t k = 0; k < ahead; ++k) {
      if (first + k * stride < whole) read[k].load_any(array + (first + k * stride) * width, aligned);
    }
    MYLOS_UNROLLED
    for (std::size_t k = 0; k < ahead; ++k) {
      MYLOS_UNROLLED
      for (unsigned j = 0; j < width; ++j) sums[0] += first + k * stride < whole ? term(read[k][j]) : Real(0);
    }
  }
  for (std::size_t i = whole * width + mine; i < n; i += stride) sums[0] += term(array[i]);
  add_over_team(team, sums);
  return sums[0];
}

/// A list of arrays as a member of a functor.
template <class... Arrays>
struct ArrayList {
  template <class Call, class... Before>
  KOKKOS_FORCEINLINE_FUNCTION void apply(const Call& call, const Before&... before) const {
    call(before...);
  }
};
template <class First, class... Rest>
struct ArrayList<First, Rest...> {
  First first;
  ArrayList<Rest...> rest;

  KOKKOS_FUNCTION explicit ArrayList(const First& one, const Rest&... others) : first(one), rest(others...) {}

  template <class Call, class... Before>
  KOKKOS_FORCEINLINE_FUNCTION void apply(const Call& call, const Before&... before) const {
    rest.apply(call, before..., first);
  }
};

template <class Body, class... Arrays>
struct FlatMap {
  Body body;
  std::size_t n;
  ArrayList<Arrays...> arrays;

  template <class Team>
  KOKKOS_INLINE_FUNCTION void operator()(const Team& team, std::size_t block) const {
    const std::size_t begin = block * flat_block, count = n - begin < flat_block ? n - begin : flat_block;
    const Body each = body;
    arrays.apply([&](const Arrays&... all) { team_map(team, count, each, from_element(all, begin)...); });
  }
};

/// Calls body(element of each array ...) for the first n elements of the arrays, in any order: `team_map` over all
/// teams.
template <class Body, class... Arrays>
void for_each_element(const std::string& label, const ExecutionSpace& space, std::size_t n, const Body& body,
                      const Arrays&... arrays) {
  for_each_row(label, space, (n + flat_block - 1) / flat_block,
               FlatMap<Body, Arrays...>{body, n, ArrayList<Arrays...>(arrays...)});
}

/// Returns the team shape for a row of n elements: few threads with up to four chunks each, rather than many idle ones.
template <class T>
TeamShape team_of_row(const ExecutionSpace& space, std::size_t n) {
  return {.threads = team_size_for(space, n / (4 * access_bytes / sizeof(T)))};
}

}  // namespace mylos
