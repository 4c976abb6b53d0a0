#pragma once

#include <Kokkos_Core.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace mylos::tests {

/// Records Kokkos kernels and allocations during its lifetime, with Kokkos Tools callbacks. Only one at a time.
/// Callbacks that were set before are those again afterwards.
class KokkosRecorder {
 public:
  struct Allocation {
    std::string label;
    std::size_t bytes;
  };

  KokkosRecorder() {
    namespace tools = Kokkos::Tools::Experimental;
    current() = this;
    tools::set_begin_parallel_for_callback(&KokkosRecorder::launch);
    tools::set_begin_parallel_reduce_callback(&KokkosRecorder::launch);
    tools::set_begin_parallel_scan_callback(&KokkosRecorder::launch);
    tools::set_allocate_data_callback(&KokkosRecorder::allocate);
  }
  ~KokkosRecorder() {
    Kokkos::Tools::Experimental::set_callbacks(before_);
    current() = nullptr;
  }
  KokkosRecorder(const KokkosRecorder&) = delete;
  KokkosRecorder& operator=(const KokkosRecorder&) = delete;

  /// Labels of kernels in launch order, and the labels that break the rule that ours begin with "mylos::". Kokkos' own
  /// labels begin with "Kokkos::"; those of Kokkos Kernels are functor names or, on devices, descriptions.
  const std::vector<std::string>& launches() const { return launches_; }
  std::vector<std::string> foreign_launches() const {
    std::vector<std::string> foreign;
    for (const std::string& label : launches_) {
      const bool kokkos = label.find("Kokkos") != std::string::npos || label.ends_with("Dot Product Based GEMM");
      if (!label.starts_with("mylos::") && !kokkos) foreign.push_back(label);
    }
    return foreign;
  }
  bool launched(std::string_view label) const {
    for (const std::string& launch : launches_) {
      if (launch == label) return true;
    }
    return false;
  }

  /// Returns Kokkos' allocations, in order.
  const std::vector<Allocation>& allocations() const { return allocations_; }

 private:
  static KokkosRecorder*& current() {
    static KokkosRecorder* recorder = nullptr;
    return recorder;
  }
  static void launch(const char* label, std::uint32_t, std::uint64_t* kernel) {
    *kernel = current()->launches_.size();
    current()->launches_.emplace_back(label);
  }
  static void allocate(Kokkos::Tools::SpaceHandle, const char* label, const void*, std::uint64_t bytes) {
    if (bytes == 0) return;  // requested at each team launch without scratch memory on a device
    current()->allocations_.push_back({label, static_cast<std::size_t>(bytes)});
  }

  const Kokkos::Tools::Experimental::EventSet before_ = Kokkos::Tools::Experimental::get_callbacks();
  std::vector<std::string> launches_;
  std::vector<Allocation> allocations_;
};

}  // namespace mylos::tests
