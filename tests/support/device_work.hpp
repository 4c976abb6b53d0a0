#pragma once

#include "core/kernels/gemm_label.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mylos::tests {

/// Records what the host asks of a device during its lifetime, with Kokkos Tools callbacks: launches, copies, and waits
/// of the host. Only one at a time. Device work inside a product or a copy belongs to it and is not recorded.
class DeviceWork {
 public:
  enum class Kind {
    kernel,
    product,  ///< a matrix product or a convolution
    copy,     ///< between arrays
    fill,     ///< an array is set to one value
    wait,     ///< a fence, a copy that fences, or a region whose name ends in "::wait"
    region,   ///< any other region of host code
  };
  struct Entry {
    Kind kind;
    std::string label;  ///< of a copy or a fill: the label of the array written
    std::uint64_t bytes = 0;
  };

  DeviceWork() {
    current() = this;
    set_callbacks({begin_kernel, begin_fence, begin_copy, end_copy, push_region, pop_region});
  }
  ~DeviceWork() {
    set_callbacks({});
    current() = nullptr;
  }
  DeviceWork(const DeviceWork&) = delete;
  DeviceWork& operator=(const DeviceWork&) = delete;

  /// Returns the entries in the order of the host's calls. A copy that fences is a copy, followed by a wait.
  const std::vector<Entry>& entries() const { return entries_; }
  std::size_t count(Kind kind) const {
    return static_cast<std::size_t>(std::ranges::count(entries_, kind, &Entry::kind));
  }
  std::vector<std::string> labels(Kind kind) const {
    std::vector<std::string> labels;
    for (const Entry& entry : entries_) {
      if (entry.kind == kind) labels.push_back(entry.label);
    }
    return labels;
  }
  /// Returns the index of the first entry with this label from `begin` on; the number of entries if there is none.
  std::size_t find(std::string_view label, std::size_t begin = 0) const {
    while (begin < entries_.size() && entries_[begin].label != label) ++begin;
    return begin;
  }

 private:
  struct Callbacks {
    Kokkos_Profiling_beginFunction kernel = nullptr;
    Kokkos_Profiling_beginFenceFunction fence = nullptr;
    Kokkos_Profiling_beginDeepCopyFunction copy = nullptr;
    Kokkos_Profiling_endDeepCopyFunction copied = nullptr;
    Kokkos_Profiling_pushFunction push = nullptr;
    Kokkos_Profiling_popFunction pop = nullptr;
  };
  static void set_callbacks(const Callbacks& callbacks) {
    namespace tools = Kokkos::Tools::Experimental;
    tools::set_begin_parallel_for_callback(callbacks.kernel);
    tools::set_begin_parallel_reduce_callback(callbacks.kernel);
    tools::set_begin_parallel_scan_callback(callbacks.kernel);
    tools::set_begin_fence_callback(callbacks.fence);
    tools::set_begin_deep_copy_callback(callbacks.copy);
    tools::set_end_deep_copy_callback(callbacks.copied);
    tools::set_push_region_callback(callbacks.push);
    tools::set_pop_region_callback(callbacks.pop);
  }
  static DeviceWork*& current() {
    static DeviceWork* recorder = nullptr;
    return recorder;
  }
  /// Adds an entry, unless it belongs to a product or a copy under way. A wait in a product is the host's all the same.
  static void add(Kind kind, std::string label, std::uint64_t bytes = 0) {
    DeviceWork& work = *current();
    const bool is_part = work.copies_ || (work.products_ > 0 && kind != Kind::wait);
    if (!is_part) work.entries_.push_back({kind, std::move(label), bytes});
  }

  static void begin_kernel(const char* label, std::uint32_t, std::uint64_t* kernel) {
    *kernel = 0;
    add(Kind::kernel, label);
  }
  static void begin_fence(const char* label, std::uint32_t, std::uint64_t* fence) {
    *fence = 0;
    if (std::string_view(label).starts_with("Kokkos::Tools::")) return;  // Kokkos' own, because a tool listens
    if (current()->copies_) current()->copy_fences_ = true;
    add(Kind::wait, label);
  }
  static void begin_copy(Kokkos_Profiling_SpaceHandle, const char* to, const void*, Kokkos_Profiling_SpaceHandle,
                         const char* from, const void*, std::uint64_t bytes) {
    const bool is_value = std::string_view(from) == "(none)" || std::string_view(from) == "Scalar";
    add(is_value ? Kind::fill : Kind::copy, to, bytes);
    current()->copies_ = true;
    current()->copy_label_ = to;
  }
  static void end_copy() {
    DeviceWork& work = *current();
    work.copies_ = false;
    if (std::exchange(work.copy_fences_, false)) add(Kind::wait, "copy to " + work.copy_label_);
  }
  static void push_region(const char* name) {
    const bool is_product = parse_gemm_label(name).has_value();
    const bool waits = std::string_view(name).ends_with("::wait");
    add(is_product ? Kind::product : waits ? Kind::wait : Kind::region, name);
    current()->regions_.push_back(is_product);
    if (is_product) ++current()->products_;
  }
  static void pop_region() {
    DeviceWork& work = *current();
    if (work.regions_.empty()) return;  // begun before this object
    if (work.regions_.back()) --work.products_;
    work.regions_.pop_back();
  }

  std::vector<Entry> entries_;
  std::vector<bool> regions_;  ///< of each open region: whether it is a product
  std::size_t products_ = 0;   ///< open regions that are products
  bool copies_ = false, copy_fences_ = false;
  std::string copy_label_;
};

}  // namespace mylos::tests
