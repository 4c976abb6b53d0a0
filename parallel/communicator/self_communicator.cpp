#include "core/kernels/activation.hpp"
#include "parallel/communicator/node_map.hpp"
#include "parallel/communicator/operation_checks.hpp"
#include "parallel/communicator/staged_array.hpp"

#include <cstring>

namespace mylos::parallel {
namespace {

template <class T>
Vector<T> vector_of(const Buffer& buffer) {
  return Vector<T>(static_cast<T*>(buffer.data), buffer.count);
}

void widen(const Buffer& from, const Buffer& to) {
  const auto* const values = static_cast<const bfloat16*>(from.data);
  for (std::size_t i = 0; i < from.count; ++i) static_cast<float*>(to.data)[i] = static_cast<float>(values[i]);
}

/// Copies `from` to `to`, which have the same number of elements: for one rank this is both the sum and the gather.
void copy(const ExecutionSpace& space, const Buffer& from, const Buffer& to) {
  if (from.count == 0 || from.data == to.data) return;
  const bool widens = from.type != to.type;
  if (from.memory == MemoryKind::host && to.memory == MemoryKind::host) {
    if (widens) return widen(from, to);
    std::memcpy(to.data, from.data, bytes_of(from));
    return;
  }
  if (widens) {
    convert<bfloat16, float>(space, vector_of<bfloat16>(from), vector_of<float>(to));
  } else {
    const Buffer from_bytes{from.data, bytes_of(from)}, to_bytes{to.data, bytes_of(to)};
    Kokkos::deep_copy(space, vector_of<std::byte>(to_bytes), vector_of<std::byte>(from_bytes));
  }
  // Another instance of the execution space may wait for the result.
  if constexpr (launches_asynchronously) space.fence("mylos::self_communicator::copy");
}

class SelfCommunicator final : public Communicator {
 public:
  std::size_t rank() const override { return 0; }
  std::size_t size() const override { return 1; }
  const NodeMap& node_map() const override { return nodes_; }

  Event all_reduce(const ExecutionSpace&, const Buffer& data, const std::string& what) override {
    check_all_reduce(data, what);
    return {};
  }
  Event reduce_scatter(const ExecutionSpace& space, const Buffer& all, const Buffer& mine,
                       const std::string& what) override {
    check_reduce_scatter(all, mine, 0, 1, what);
    copy(space, all, mine);
    return {};
  }
  Event all_gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all,
                   const std::string& what) override {
    check_all_gather(mine, all, 0, 1, what);
    copy(space, mine, all);
    return {};
  }
  Event broadcast(const ExecutionSpace&, const Buffer& data, std::size_t root, const std::string& what) override {
    check_broadcast(data, root, 1, what);
    return {};
  }
  Event gather(const ExecutionSpace& space, const Buffer& mine, const Buffer& all, std::size_t root,
               const std::string& what) override {
    check_gather(mine, all, 0, root, 1, what);
    copy(space, mine, all);
    return {};
  }
  Event transfer(const ExecutionSpace&, const Buffer& data, std::size_t from, std::size_t to,
                 const std::string& what) override {
    check_transfer(data, from, to, 1, what);
    return {};
  }
  void barrier(const std::string&) override {}
  void set_bucket(std::size_t) override {}
  void set_order(SumOrder) override {}

  std::unique_ptr<Communicator> split(std::size_t, std::size_t) override { return make_self_communicator(); }

 private:
  NodeMap nodes_ = apart(1);
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() { return std::make_unique<SelfCommunicator>(); }

}  // namespace mylos::parallel
