#pragma once

#include "core/device.hpp"
#include "core/numeric.hpp"
#include "parallel/communicator/exchange_memory.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>

/// Exchange of arrays between ranks. All ranks call the same operations in the same order, across all communicators. On
/// each rank operations run one after another in that order, asynchronously to the caller. Only if device arrays are
/// exchanged by a library of the device (NCCL), those of host arrays run beside them.
namespace mylos::parallel {

class NodeMap;

enum class ElementType { float32, float64, bfloat16, int64, byte };
std::size_t bytes_of(ElementType type);

/// The memory that holds an array. On host builds both are the same.
enum class MemoryKind { device, host };

/// An array of an operation. Its memory must outlive the operation.
struct Buffer {
  void* data = nullptr;
  std::size_t count = 0;  ///< in elements
  ElementType type = ElementType::float32;
  MemoryKind memory = MemoryKind::device;
};
Buffer buffer_of(const Vector<float>& vector);
Buffer buffer_of(const Vector<bfloat16>& vector);
/// A buffer of raw bytes, for operations that move data but do not sum.
Buffer buffer_of(const Vector<std::byte>& vector);

/// An array of a call that takes several, with its description in messages.
struct NamedArray {
  Buffer data;
  std::string what;
};
/// The same for an array that is divided among ranks: `mine` is for this rank's part of `all`.
struct NamedParts {
  Buffer mine, all;
  std::string what;
};

/// A handle to an operation under way; copyable.
class Event {
 public:
  /// The state of an operation, provided by an implementation.
  class Operation {
   public:
    virtual ~Operation() = default;
    /// Makes later launches on `space` see the result. On a device it may return before the operation is done. Errors:
    /// std::runtime_error, see Communicator.
    virtual void wait(const ExecutionSpace& space) = 0;
    virtual bool done() = 0;
    /// See Event::wait_for_its_end.
    virtual void wait_for_its_end() noexcept = 0;
    /// See Event::discard.
    virtual void discard(const ExecutionSpace&) { wait_for_its_end(); }
  };

  /// An event of an operation that is already done.
  Event() = default;
  explicit Event(std::shared_ptr<Operation> operation) : operation_(std::move(operation)) {}
  /// Returns the event of several operations, which is done when all of them are.
  static Event all_of(std::span<const Event> events);

  /// Makes later launches on `space` see the result of this operation and of all earlier ones that it does not run
  /// beside. Memory of results that have already been waited for is not touched again.
  void wait(const ExecutionSpace& space) const;
  /// Returns true if the operation is done. It may return false after wait(): on a device, wait() only orders the
  /// operation before later launches.
  bool done() const { return !operation_ || operation_->done(); }
  /// Returns when the operation no longer uses its memory, even if it failed. Call it before that memory is freed or
  /// overwritten. The result may be lost unless wait() was called before.
  void wait_for_its_end() const noexcept {
    if (operation_) operation_->wait_for_its_end();
  }

  /// Makes later launches on `space`, and later operations, come after this operation. The result may be lost unless
  /// wait() was called before. On a device it may return before the operation is done.
  void discard(const ExecutionSpace& space) const {
    if (operation_) operation_->discard(space);
  }

 private:
  std::shared_ptr<Operation> operation_;
};

/// The order in which arrays of more than 64 KiB are summed; shorter ones always use `ranks`. `ranks`: a balanced
/// binary tree over ranks, regardless of their nodes. `nodes`: a balanced binary tree over the ranks of each node, then
/// over nodes in the order of their lowest rank. Both are the same if consecutive ranks share a node and each node has
/// the same power of two of ranks; the last node may have fewer.
enum class SumOrder { nodes, ranks };

/// A group of ranks. `what` describes an operation in messages and must be the same on every rank. An operation begins
/// when everything launched on `space` before it has ended.
///
/// The order of a sum depends only on the number of ranks and their nodes: it is a balanced binary tree over
/// neighbouring ranks (see SumOrder), in float (double for float64). The bits are therefore the same in every run. For
/// powers of two of ranks the tree is the upper part of one fixed tree.
///
/// Errors: if a rank does not join an operation within the time limit, or has died, the program ends on every rank,
/// with one line that names it. Sizes that do not fit cause std::invalid_argument on the caller.
class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual std::size_t rank() const = 0;
  virtual std::size_t size() const = 0;
  /// Returns the nodes of the group's ranks.
  virtual const NodeMap& node_map() const = 0;

  /// Replaces `data` with its sum over ranks, with the same bits on each. bfloat16 is summed in float and rounded once.
  virtual Event all_reduce(const ExecutionSpace& space, const Buffer& data, const std::string& what) = 0;
  /// Sums part rank() of `all` over ranks into `mine`. `all` has size() parts of mine.count elements. Its memory has
  /// all of them, but all.count may be smaller if the array ends in padding: what follows need not be exchanged, and is
  /// left as it is if it is zero on every rank. `mine` may alias its part of `all`; the other parts are then left
  /// undefined. If `all` is bfloat16, `mine` may be float32, as the partial sums are.
  virtual Event reduce_scatter(const ExecutionSpace& space, const Buffer& all, const Buffer& mine,
                               const std::string& what) = 0;
  /// Copies rank r's `mine` to part r of `all`, on all ranks. `mine` may alias its part of `all`. As in reduce_scatter,
  /// all.count may leave out padding, which need not be copied.
  virtual Event all_gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all,
                           const std::string& what) = 0;
  virtual Event broadcast(const ExecutionSpace& space, const Buffer& data, std::size_t root,
                          const std::string& what) = 0;
  /// Copies rank r's `mine` to part r of `all`, on rank `root`. There `mine` may alias its part. On the other ranks
  /// `all` is not accessed and may be empty.
  virtual Event gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all, std::size_t root,
                       const std::string& what) = 0;
  /// Copies `data` of rank `from` to `data` of rank `to`, which must have the same size. The other ranks do not wait,
  /// and their `data` is not accessed.
  virtual Event transfer(const ExecutionSpace& space, const Buffer& data, std::size_t from, std::size_t to,
                         const std::string& what) = 0;

  /// The same operations on several arrays, which must not overlap. All ranks pass arrays of the same sizes, types and
  /// memory kinds in the same order; there may be none. The event is that of all arrays. A library that can exchange
  /// several arrays at once (NCCL) does so; otherwise they are exchanged one after another.
  virtual Event all_reduce_coalesced(const ExecutionSpace& space, std::span<const NamedArray> arrays);
  virtual Event reduce_scatter_coalesced(const ExecutionSpace& space, std::span<const NamedParts> arrays);
  virtual Event all_gather_coalesced(const ExecutionSpace& space, std::span<const NamedParts> arrays);
  /// Return how many bytes consecutive arrays should have together before they are exchanged in one of these calls; the
  /// same on every rank. 0 if arrays are exchanged one after another: collecting them would only delay the first.
  virtual std::size_t least_sum_bytes(ElementType) const { return 0; }
  virtual std::size_t least_gather_bytes() const { return 0; }

  /// Connects the devices of the group, and proves and measures how they exchange (exchange_proof.hpp), if a library of
  /// the device exchanges their arrays. Groups of the same ranks are connected once. The first operation on a device
  /// array would connect them, too, without the proof. Returns the bytes per second of the slowest rank, 0 if nothing
  /// was measured. Collective. Errors: SharedError (agreement.hpp) on all ranks of the group, after which the
  /// communicator can only be destroyed.
  virtual double connect(const ExecutionSpace&) { return 0.0; }

  /// Throws the error of an operation of this process that has failed, if one has. When an operation of a device fails,
  /// kernels that wait for it run on, with wrong values: call this before values that they have copied to the host are
  /// used.
  virtual void expect_no_failure() const {}

  /// Returns when all ranks have called it.
  virtual void barrier(const std::string& what) = 0;

  /// Sets the bucket size, the same on every rank, for all groups of this communicator's world. A rank receives a long
  /// array in pieces of at most about `bytes`, counted over all other ranks together; two pieces are under way at a
  /// time. Results do not depend on it.
  virtual void set_bucket(std::size_t bytes) = 0;
  /// Sets the order of sums, the same on every rank, for all groups of this communicator's world. The default is
  /// SumOrder::nodes. Where the two orders differ, SumOrder::ranks sends more between nodes.
  virtual void set_order(SumOrder order) = 0;

  /// Returns the group of ranks that pass the same `color`, ordered by `key`, then by rank. Collective.
  virtual std::unique_ptr<Communicator> split(std::size_t color, std::size_t key) = 0;
};

/// Returns the bytes that this process has sent to other ranks so far. Bytes sent by NCCL are computed from its
/// algorithms.
std::uint64_t sent_bytes();
void count_sent(std::size_t bytes);  ///< called by the code that sends

/// Messages that this process has sent for operations so far: all messages over MPI, and those of ordered sums over
/// NCCL.
struct Traffic {
  std::uint64_t messages = 0, bytes = 0;
  std::uint64_t network_bytes = 0;  ///< bytes to ranks on other nodes

  friend Traffic operator-(const Traffic& a, const Traffic& b) {
    return {a.messages - b.messages, a.bytes - b.bytes, a.network_bytes - b.network_bytes};
  }
  friend bool operator==(const Traffic&, const Traffic&) = default;
};
Traffic traffic();
void count_message(std::size_t bytes, bool leaves_node);  ///< called by the code that sends

/// Returns the seconds that this process's threads have spent in Event::wait so far. On a host build a thread does
/// nothing else meanwhile; on a device build a wait may only enqueue a dependency on the device.
double waited_seconds();

/// Returns a group of one rank.
std::unique_ptr<Communicator> make_self_communicator();

}  // namespace mylos::parallel
