#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

/// How ranks exchange arrays. All ranks call the same operations in the same order, whatever communicators they are of;
/// on each rank they are carried out in that order, one after another, while the caller goes on.
namespace mylos::parallel {

enum class ElementType { float32, float64, bfloat16, int64, byte };
std::size_t bytes_of(ElementType type);

/// Where an array's memory is. On host builds both are the same.
enum class MemoryKind { device, host };

/// An array of an operation. Its memory outlives the operation.
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;  ///< elements
  ElementType type = ElementType::float32;
  MemoryKind memory = MemoryKind::device;
};
Buffer buffer_of(const Vector<float>& vector);
Buffer buffer_of(const Vector<bfloat16>& vector);
/// Of any values: what is moved, not summed.
Buffer buffer_of(const Vector<std::byte>& vector);

/// An operation under way; a copyable handle.
class Event {
 public:
  /// What an implementation keeps of an operation.
  class Operation {
   public:
    virtual ~Operation() = default;
    /// Returns when what is launched on `space` from here on sees the result. Errors: std::runtime_error, see
    /// Communicator.
    virtual void wait(const ExecutionSpace& space) = 0;
    virtual bool done() = 0;
    /// See Event.
    virtual void wait_for_its_end() noexcept = 0;
  };

  /// Done.
  Event() = default;
  explicit Event(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}

  /// Returns when what is launched on `space` from here on sees the result, and those of all operations before it. The
  /// memory is not touched where it was waited for already.
  void wait(const ExecutionSpace& space) const;
  /// After wait() it may still be under way, before what is launched on that space.
  bool done() const { return !operation_ || operation_->done(); }
  /// Returns when the operation no longer uses its memory, also where it failed. Call it before that memory is freed or
  /// written again. Without an earlier wait() the result may be lost.
  void wait_for_its_end() const noexcept {
    if (operation_) operation_->wait_for_its_end();
  }

 private:
  std::shared_ptr<Operation> operation_;
};

/// In which order arrays of more than 64 KiB are summed; shorter ones have the order `ranks`. `ranks`: as a balanced
/// binary tree over ranks, wherever they are. `nodes`: as such a tree over the ranks of each node, and then over nodes
/// in the order of their lowest rank. Both are the same where consecutive ranks are on nodes of a power of two, of
/// which the last may have fewer.
enum class SumOrder { nodes, ranks };

/// One group of ranks. `what` says to people what an operation is for, the same on every rank. An operation begins when
/// what was launched on `space` before it has ended. Sums have one order for a number of ranks and their nodes: partial
/// sums of neighbouring ranks, as a balanced binary tree over them (see SumOrder), in float (double for float64), so
/// that they are the same bits on every run and, for powers of two, the upper part of one fixed tree. Errors: a rank
/// that does not come within the time limit, or is gone, ends the program on every rank, with one line that names it;
/// sizes that do not fit are std::invalid_argument on the caller.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;

  /// `data` becomes its sum over ranks, the same bits on each. bfloat16 is summed in float and rounded once.
  virtual Event all_reduce(const ExecutionSpace& space, const Buffer& data, const std::string& what) = 0;
  /// `all` has size() parts of mine.count elements; `mine` becomes the sum over ranks of part rank(). It may be that
  /// part of `all`; the others are then left undefined. From bfloat16 `mine` may be float32: partial sums are float.
  virtual Event reduce_scatter(const ExecutionSpace& space, const Buffer& all, const Buffer& mine,
                               const std::string& what) = 0;
  /// Part r of `all` becomes rank r's `mine`, which may be that part.
  virtual Event all_gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all,
                           const std::string& what) = 0;
  virtual Event broadcast(const ExecutionSpace& space, const Buffer& data, std::size_t root,
                          const std::string& what) = 0;
  /// On rank `root` part r of `all` becomes rank r's `mine`, which may be that part there. On the other ranks `all` is
  /// neither read nor written and may be empty.
  virtual Event gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all, std::size_t root,
                       const std::string& what) = 0;
  /// The `data` of rank `from` comes to rank `to`, whose `data` is of the same size. That of the other ranks is neither
  /// read nor written; they do not wait.
  virtual Event transfer(const ExecutionSpace& space, const Buffer& data, std::size_t from, std::size_t to,
                         const std::string& what) = 0;
  /// Returns when all ranks have come.
  virtual void barrier(const std::string& what) = 0;

  /// From here on a rank receives at most about `bytes` at a time of a long array, from all others together, and two
  /// such pieces are under way; the same on every rank. For all groups that share this one's world. No value depends on
  /// it.
  virtual void set_bucket(std::size_t bytes) = 0;
  /// The order of sums from here on, SumOrder::nodes at first; the same on every rank, for all groups that share this
  /// one's world. With SumOrder::ranks sums send more from node to node where the two orders differ.
  virtual void set_order(SumOrder order) = 0;

  /// The ranks that give the same `color`, in the order of `key` (ties: of rank). All ranks call it.
  virtual std::unique_ptr<Communicator> split(std::size_t color, std::size_t key) = 0;
};

/// Bytes that this process has sent to other ranks since it began. What NCCL sends is counted by its algorithms'
/// formulas.
std::uint64_t sent_bytes();
void count_sent(std::size_t bytes);  ///< by what sends them

/// Messages of operations that this process has sent since it began: all over MPI, and those of ordered sums over NCCL.
struct Traffic {
  std::uint64_t messages = 0, bytes = 0;
  std::uint64_t network_bytes = 0;  ///< to ranks on other nodes

  friend Traffic operator-(const Traffic& a, const Traffic& b) {
    return {a.messages - b.messages, a.bytes - b.bytes, a.network_bytes - b.network_bytes};
  }
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
Traffic traffic();
void count_message(std::size_t bytes, bool leaves_node);  ///< by what sends it

/// Seconds that this process' threads spent in Event::wait since it began. On a host build they did nothing else then;
/// on a device build a wait may do no more than tell the device to.
double waited_seconds();

/// A group of one.
std::unique_ptr<Communicator> make_self_communicator();

/// The bucket of a communicator that was told none.
inline constexpr std::size_t default_bucket = std::size_t{8} << 20;

/// Bytes that a rank holds at most for what others send it, beside the arrays of operations: twice the bucket, and
/// 2 MiB at least, whatever the number of ranks.
std::size_t exchange_bytes(std::size_t ranks, std::size_t bucket = default_bucket);
/// The bucket of ordered sums over NCCL: larger, because messages between GPUs have to be longer to take more time than
/// their launch.
constexpr std::size_t device_bucket(std::size_t bucket) { return 4 * bucket; }
/// exchange_bytes in device memory, for a rank whose ordered sums go through NCCL: one room for all its groups. What
/// NCCL holds for its own connections is not in it.
std::size_t device_exchange_bytes(std::size_t ranks, std::size_t bucket = default_bucket);

}  // namespace mylos::parallel
