#include "tests/core/kernels/emulated_block.hpp"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace mylos::matrix {
namespace {

/// The operation in which a thread waits for other threads.
enum class Meeting {
  none,
  block,
  warp,
  load,
  load_transposed,
  load_octet,
  load_word,
  product,
  quad_products,
  wave_product,
  shuffle,
  ended
};

struct Copy {
  std::byte* to;
  std::size_t bytes;
  const void* from;  ///< null: zeros
};

/// A thread, the operation in which it waits, and its arguments.
struct Thread {
  ucontext_t context{};
  std::vector<std::byte> stack = std::vector<std::byte>(std::size_t{256} << 10);
  Meeting meeting = Meeting::none;
  std::vector<Copy> copies{};

  std::uint32_t row = 0;  ///< address in shared memory
  std::uint32_t* loaded = nullptr;
  std::array<float*, 2> c{};  ///< four elements each; only M8n8k4 has the second
  std::array<std::uint32_t, 4> a{};
  std::array<std::uint32_t, 2> b{};
  bool b_has_columns = false;  ///< of M8n8k4: a thread has elements of a column of b, not of a row
  float (*to_float)(std::uint16_t) = nullptr;
  std::uint32_t value = 0;
  int from = 0;
};

std::uint16_t element_of(std::uint32_t word, int index) { return static_cast<std::uint16_t>(word >> (16 * index)); }

}  // namespace

class EmulatedThreads {
 public:
  EmulatedThreads(int lanes, std::size_t octets, ThreadOrder order)
      : lanes_(lanes), shared_(octets), order_(order), all_(static_cast<std::size_t>(warps) * lanes) {}

  void run(int block, const std::function<void(const EmulatedBlock&)>& body);

  Thread& meet(int thread, Meeting meeting) {
    all_[thread].meeting = meeting;
    return all_[thread];
  }
  void yield(int thread) { swapcontext(&all_[thread].context, &scheduler_); }
  Thread& of(int thread) { return all_[thread]; }
  int lanes() const { return lanes_; }
  Octet* shared() { return shared_.data(); }
  /// Returns the address of `bytes` bytes of shared memory.
  std::byte* at(std::uint32_t address, std::size_t bytes) {
    if (address % bytes != 0) throw std::logic_error("an address of shared memory that is not aligned");
    if (address + bytes > shared_.size() * sizeof(Octet)) throw std::logic_error("an address outside shared memory");
    return reinterpret_cast<std::byte*>(shared_.data()) + address;
  }

  EmulationCounts counts;

 private:
  static void enter(unsigned low, unsigned high);
  int ordered(int i, int count) const { return order_ == ThreadOrder::ascending ? i : count - 1 - i; }
  void run_warp(int warp);
  void meet_in_warp(Thread* lanes);
  void load(Thread* lanes, bool transposed);
  void count_load(const Thread* lanes, int bytes);
  static void multiply(Thread* lanes);
  static void multiply_quads(Thread* lanes);
  static void multiply_wave(Thread* lanes);

  int lanes_;
  std::vector<Octet> shared_;
  ThreadOrder order_;
  std::vector<Thread> all_;
  ucontext_t scheduler_{};
  const std::function<void(const EmulatedBlock&)>* body_ = nullptr;
  int block_ = 0, entering_ = 0;
  std::exception_ptr error_;
};

void EmulatedThreads::enter(unsigned low, unsigned high) {
  auto* const self = reinterpret_cast<EmulatedThreads*>((static_cast<std::uintptr_t>(high) << 32) | low);
  const int thread = self->entering_;
  try {
    (*self->body_)(EmulatedBlock(*self, self->block_, thread));
  } catch (...) {
    self->error_ = std::current_exception();
  }
  self->all_[thread].meeting = Meeting::ended;
  self->yield(thread);
}

void EmulatedThreads::run(int block, const std::function<void(const EmulatedBlock&)>& body) {
  std::memset(static_cast<void*>(shared_.data()), 0xff, shared_.size() * sizeof(Octet));
  body_ = &body;
  block_ = block;
  const auto self = reinterpret_cast<std::uintptr_t>(this);
  for (Thread& thread : all_) {
    thread.meeting = Meeting::none;
    getcontext(&thread.context);
    thread.context.uc_stack.ss_sp = thread.stack.data();
    thread.context.uc_stack.ss_size = thread.stack.size();
    thread.context.uc_link = nullptr;
    makecontext(&thread.context, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(self),
                static_cast<unsigned>(self >> 32));
  }
  for (;;) {
    for (int i = 0; i < warps; ++i) run_warp(ordered(i, warps));
    const auto ended = std::count_if(all_.begin(), all_.end(), [](auto& t) { return t.meeting == Meeting::ended; });
    if (ended == std::ssize(all_)) break;
    if (ended != 0) throw std::logic_error("a thread waits for a block whose other threads have ended");
    for (Thread& thread : all_) thread.meeting = Meeting::none;
  }
  for (const Thread& thread : all_) {
    if (!thread.copies.empty()) throw std::logic_error("a copy was never waited for");
  }
}

/// Runs until all threads of a warp wait for the block or have ended.
void EmulatedThreads::run_warp(int warp) {
  Thread* const lanes = all_.data() + static_cast<std::ptrdiff_t>(warp) * lanes_;
  for (;;) {
    for (int i = 0; i < lanes_; ++i) {
      const int lane = ordered(i, lanes_);
      entering_ = warp * lanes_ + lane;  // index of a thread that starts
      if (lanes[lane].meeting == Meeting::none) swapcontext(&scheduler_, &lanes[lane].context);
      if (error_ != nullptr) std::rethrow_exception(std::exchange(error_, nullptr));
    }
    const Meeting meeting = lanes[0].meeting;
    for (int i = 1; i < lanes_; ++i) {
      if (lanes[i].meeting != meeting) throw std::logic_error("the threads of a warp do not meet in one place");
    }
    if (meeting == Meeting::block || meeting == Meeting::ended) return;
    meet_in_warp(lanes);
    for (int i = 0; i < lanes_; ++i) lanes[i].meeting = Meeting::none;
  }
}

void EmulatedThreads::meet_in_warp(Thread* lanes) {
  switch (lanes[0].meeting) {
    case Meeting::load:
      return load(lanes, false);
    case Meeting::load_transposed:
      return load(lanes, true);
    case Meeting::load_octet:
      return count_load(lanes, sizeof(Octet));
    case Meeting::load_word:
      return count_load(lanes, sizeof(std::uint32_t));
    case Meeting::product:
      counts.multiply_adds += std::size_t{16 * 8 * 16};
      return multiply(lanes);
    case Meeting::quad_products:
      counts.multiply_adds += std::size_t{4 * 8 * 8 * 4};
      return multiply_quads(lanes);
    case Meeting::wave_product:
      counts.multiply_adds += std::size_t{16 * 16 * 16};
      return multiply_wave(lanes);
    case Meeting::shuffle: {
      std::array<std::uint32_t, 64> values{};
      for (int i = 0; i < lanes_; ++i) values[i] = lanes[i].value;
      for (int i = 0; i < lanes_; ++i) {
        if (lanes[i].from < 0 || lanes[i].from >= lanes_) throw std::logic_error("a shuffle from no thread");
        lanes[i].value = values[lanes[i].from];
      }
      return;
    }
    default:
      return;
  }
}

/// Counts a load of 16 or 4 bytes per thread, which the memory does for 128 bytes of adjacent threads at a time.
/// Threads with one address share an access, and threads with different addresses in the same banks need one each.
void EmulatedThreads::count_load(const Thread* lanes, int bytes) {
  ++counts.operand_loads;
  const int at_once = 128 / bytes;
  for (int first = 0; first < lanes_; first += at_once) {
    std::array<int, 32> in_group{};
    for (int i = first; i < first + at_once; ++i) {
      const auto has_address = [&](const Thread& other) { return other.row == lanes[i].row; };
      if (std::none_of(lanes + first, lanes + i, has_address)) ++in_group[lanes[i].row / bytes % at_once];
    }
    counts.bank_conflicts += static_cast<std::size_t>(*std::max_element(in_group.begin(), in_group.end()) - 1);
  }
}

/// ldmatrix.m8n8.x4: thread 8 i + r provides the address of row r of matrix i. Thread 4 g + t receives elements (g, 2
/// t) and (g, 2 t + 1) or, if transposed, (2 t, g) and (2 t + 1, g).
void EmulatedThreads::load(Thread* lanes, bool transposed) {
  count_load(lanes, sizeof(Octet));
  for (int matrix = 0; matrix < 4; ++matrix) {
    const auto element = [&](int r, int column) {
      const auto* const row = reinterpret_cast<const Octet*>(at(lanes[8 * matrix + r].row, sizeof(Octet)));
      return element_of(row->words[column / 2], column % 2);
    };
    for (int i = 0; i < M16n8k16::lanes; ++i) {
      const int g = i / 4, t = i % 4;
      const std::uint16_t low = transposed ? element(2 * t, g) : element(g, 2 * t);
      const std::uint16_t high = transposed ? element(2 * t + 1, g) : element(g, 2 * t + 1);
      lanes[i].loaded[matrix] = low | static_cast<std::uint32_t>(high) << 16;
    }
  }
}

/// mma.m16n8k16: the layouts of a, b and c follow the figures for .bf16 and .f16 in NVIDIA's "Parallel Thread Execution
/// ISA".
void EmulatedThreads::multiply(Thread* lanes) {
  std::array<std::array<float, 16>, 16> a{};
  std::array<std::array<float, 8>, 16> b{};
  for (int i = 0; i < M16n8k16::lanes; ++i) {
    const int group = i >> 2, in_group = i % 4;
    for (int e = 0; e < 8; ++e) {
      const int row = e < 2 || (e >= 4 && e < 6) ? group : group + 8;
      const int column = in_group * 2 + (e & 1) + (e < 4 ? 0 : 8);
      a[row][column] = lanes[i].to_float(element_of(lanes[i].a[e / 2], e % 2));
    }
    for (int e = 0; e < 4; ++e) {
      const int row = in_group * 2 + (e & 1) + (e < 2 ? 0 : 8);
      b[row][group] = lanes[i].to_float(element_of(lanes[i].b[e / 2], e % 2));
    }
  }
  for (int i = 0; i < M16n8k16::lanes; ++i) {
    for (int e = 0; e < 4; ++e) {
      const int row = (i >> 2) + (e < 2 ? 0 : 8), column = i % 4 * 2 + (e & 1);
      float sum = lanes[i].c[0][e];
      for (int k = 0; k < 16; ++k) sum += a[row][k] * b[k][column];
      lanes[i].c[0][e] = sum;
    }
  }
}

/// mma.m8n8k4, four times: the layouts of a, b and c follow the formulas for .f16, and c as .f32, in NVIDIA's "Parallel
/// Thread Execution ISA".
void EmulatedThreads::multiply_quads(Thread* lanes) {
  for (int quad_pair = 0; quad_pair < 4; ++quad_pair) {
    std::array<std::array<float, 4>, 8> a{};
    std::array<std::array<float, 8>, 4> b{};
    const auto for_each_lane = [&](const auto& body) {
      for (int i = 0; i < 4; ++i) body(4 * quad_pair + i);
      for (int i = 0; i < 4; ++i) body(4 * quad_pair + i + 16);
    };
    for_each_lane([&](int i) {
      const int high = i < 16 ? 0 : 4;
      for (int e = 0; e < 4; ++e) {
        a[i % 4 + high][e] = lanes[i].to_float(element_of(lanes[i].a[e / 2], e % 2));
        const float of_b = lanes[i].to_float(element_of(lanes[i].b[e / 2], e % 2));
        if (lanes[i].b_has_columns) {
          b[e][i % 4 + high] = of_b;
        } else {
          b[i % 4][e + high] = of_b;
        }
      }
    });
    for_each_lane([&](int i) {
      for (int e = 0; e < 8; ++e) {
        const int row = (i & 0b1) + (e & 0b10) + (i < 16 ? 0 : 4);
        const int column = (e & 0b100) + (i & 0b10) + (e & 0b1);
        float& sum = lanes[i].c[e / 4][e % 4];
        for (int k = 0; k < 4; ++k) sum += a[row][k] * b[k][column];
      }
    });
  }
}

/// v_mfma_f32_16x16x16_f16 and _bf16: the layouts of a, b and c follow those of AMD's "Matrix Instruction Calculator".
void EmulatedThreads::multiply_wave(Thread* lanes) {
  std::array<std::array<float, 16>, 16> a{}, b{};
  for (int i = 0; i < Mfma16x16x16::lanes; ++i) {
    for (int e = 0; e < 4; ++e) {
      a[i % 16][4 * (i / 16) + e] = lanes[i].to_float(element_of(lanes[i].a[e / 2], e % 2));
      b[4 * (i / 16) + e][i % 16] = lanes[i].to_float(element_of(lanes[i].b[e / 2], e % 2));
    }
  }
  for (int i = 0; i < Mfma16x16x16::lanes; ++i) {
    for (int e = 0; e < 4; ++e) {
      for (int k = 0; k < 16; ++k) lanes[i].c[0][e] += a[4 * (i / 16) + e][k] * b[k][i % 16];
    }
  }
}

int EmulatedBlock::lane() const { return thread_ % threads_.lanes(); }
int EmulatedBlock::warp() const { return thread_ / threads_.lanes(); }

void EmulatedBlock::sync() const {
  threads_.meet(thread_, Meeting::block);
  threads_.yield(thread_);
}

void EmulatedBlock::sync_warp() const {
  threads_.meet(thread_, Meeting::warp);
  threads_.yield(thread_);
}

Octet* EmulatedBlock::shared() const { return threads_.shared(); }

void EmulatedAmpereBlock::copy(std::uint32_t to, const void* from, std::size_t bytes, bool is_there) const {
  std::byte* const target = threads_.at(to, bytes);
  if (reinterpret_cast<std::uintptr_t>(from) % bytes != 0) throw std::logic_error("a copy that is not aligned");
  std::memset(target, 0xff, bytes);
  threads_.of(thread_).copies.push_back({target, bytes, is_there ? from : nullptr});
}

void EmulatedAmpereBlock::wait_for_copies() const {
  for (const Copy& copy : std::exchange(threads_.of(thread_).copies, {})) {
    if (copy.from == nullptr) {
      std::memset(copy.to, 0, copy.bytes);
    } else {
      std::memcpy(copy.to, copy.from, copy.bytes);
    }
  }
}

void EmulatedAmpereBlock::load_matrices(std::uint32_t row, std::uint32_t (&m)[4]) const {
  Thread& self = threads_.meet(thread_, Meeting::load);
  self.row = row;
  self.loaded = m;
  threads_.yield(thread_);
}

void EmulatedAmpereBlock::load_matrices_transposed(std::uint32_t row, std::uint32_t (&m)[4]) const {
  Thread& self = threads_.meet(thread_, Meeting::load_transposed);
  self.row = row;
  self.loaded = m;
  threads_.yield(thread_);
}

std::uint32_t EmulatedBlock::shuffle(std::uint32_t value, int lane) const {
  Thread& self = threads_.meet(thread_, Meeting::shuffle);
  self.value = value;
  self.from = lane;
  threads_.yield(thread_);
  return self.value;
}

float EmulatedBlock::exchange(float value, int mask) const {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  bits = shuffle(bits, lane() ^ mask);
  std::memcpy(&value, &bits, sizeof bits);
  return value;
}

void EmulatedAmpereBlock::multiply_add(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1,
                                       float (*to_float)(std::uint16_t)) const {
  Thread& self = threads_.meet(thread_, Meeting::product);
  self.c = {c, nullptr};
  std::copy(std::begin(a), std::end(a), self.a.begin());
  self.b = {b0, b1};
  self.to_float = to_float;
  threads_.yield(thread_);
}

void EmulatedSynchronousBlock::copy(std::uint32_t to, const void* from, std::size_t bytes, bool is_there) const {
  std::byte* const target = threads_.at(to, bytes);
  if (!is_there) {
    std::memset(target, 0, bytes);
    return;
  }
  if (reinterpret_cast<std::uintptr_t>(from) % bytes != 0) throw std::logic_error("a copy that is not aligned");
  std::memcpy(target, from, bytes);
}

/// Reads when the thread arrives, not when all have: threads of such a device do not wait for each other to load.
void EmulatedSynchronousBlock::load_octet(std::uint32_t octet, std::uint32_t (&m)[4]) const {
  std::memcpy(m, threads_.at(octet, sizeof(Octet)), sizeof(Octet));
  threads_.meet(thread_, Meeting::load_octet).row = octet;
  threads_.yield(thread_);
}

std::uint32_t EmulatedSynchronousBlock::load_word(std::uint32_t word) const {
  std::uint32_t loaded;
  std::memcpy(&loaded, threads_.at(word, sizeof loaded), sizeof loaded);
  threads_.meet(thread_, Meeting::load_word).row = word;
  threads_.yield(thread_);
  return loaded;
}

void EmulatedVoltaBlock::multiply_add(float (&c0)[4], float (&c1)[4], const std::array<std::uint32_t, 2>& a,
                                      const std::array<std::uint32_t, 2>& b, bool b_has_columns,
                                      float (*to_float)(std::uint16_t)) const {
  Thread& self = threads_.meet(thread_, Meeting::quad_products);
  self.c = {c0, c1};
  self.a = {a[0], a[1]};
  self.b = b;
  self.b_has_columns = b_has_columns;
  self.to_float = to_float;
  threads_.yield(thread_);
}

void EmulatedMfmaBlock::multiply_add(float (&c)[4], const std::array<std::uint32_t, 2>& a,
                                     const std::array<std::uint32_t, 2>& b, float (*to_float)(std::uint16_t)) const {
  Thread& self = threads_.meet(thread_, Meeting::wave_product);
  self.c = {c, nullptr};
  self.a = {a[0], a[1]};
  self.b = b;
  self.to_float = to_float;
  threads_.yield(thread_);
}

EmulationCounts emulate(std::size_t blocks, int lanes, std::size_t octets, ThreadOrder order,
                        const std::function<void(const EmulatedBlock&)>& body) {
  EmulatedThreads all(lanes, octets, order);
  for (std::size_t block = 0; block < blocks; ++block) all.run(static_cast<int>(block), body);
  return all.counts;
}

}  // namespace mylos::matrix
