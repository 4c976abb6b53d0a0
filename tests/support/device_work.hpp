#pragma once

#include "core/kernels/products/gemm_label.hpp"

#include <Kokkos_Core.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

namespace mylos::tests {

namespace tools = Kokkos::Tools::Experimental;

/// Records what this thread asks of a device during its lifetime, with Kokkos Tools callbacks: launches, copies, and
/// waits of the host. Only one at a time. Device work inside a product or a copy belongs to it and is not recorded.
/// Callbacks that were set before are still called, and are the only ones again afterwards. Other threads must not
/// launch work while it is created or destroyed.
class DeviceWork {
 public:
  enum class Kind {
    kernel,
    product,  ///< a matrix product or a convolution
    copy,     ///< between arrays
    fill,     ///< an array is set to one value
    /// A fence, a copy that fences, or a region whose name ends in "::wait". Waits in such a region belong to it.
    wait,
    region,  ///< any other region of host code
  };
  struct Entry {
    Kind kind;
    std::string label;  ///< of a copy or a fill: the label of the array written
    std::uint64_t bytes = 0;
  };

  DeviceWork() {
    current() = this;
    tools::EventSet callbacks = before_;
    callbacks.begin_parallel_for = begin_kernel<&tools::EventSet::begin_parallel_for>;
    callbacks.begin_parallel_reduce = begin_kernel<&tools::EventSet::begin_parallel_reduce>;
    callbacks.begin_parallel_scan = begin_kernel<&tools::EventSet::begin_parallel_scan>;
    callbacks.begin_fence = begin_fence;
    callbacks.begin_deep_copy = begin_copy;
    callbacks.end_deep_copy = end_copy;
    callbacks.push_region = push_region;
    callbacks.pop_region = pop_region;
    tools::set_callbacks(callbacks);
  }
  ~DeviceWork() {
    tools::set_callbacks(before_);
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
  static DeviceWork*& current() {
    static DeviceWork* recorder = nullptr;
    return recorder;
  }
  /// Calls a callback that was set before this object, if there is one.
  template <class... Arguments>
  static void pass_on(void (*callback)(Arguments...), std::type_identity_t<Arguments>... arguments) {
    if (callback != nullptr) callback(arguments...);
  }
  /// Other threads, such as the one that communicates, are not recorded.
  static bool is_recorded() { return std::this_thread::get_id() == current()->thread_; }
  /// Adds an entry, unless it belongs to a product or a copy under way. A wait in a product is the host's all the same.
  static void add(Kind kind, std::string label, std::uint64_t bytes = 0) {
    DeviceWork& work = *current();
    const bool is_part = work.copies_ || (kind == Kind::wait ? work.waits_ > 0 : work.products_ > 0);
    if (!is_part) work.entries_.push_back({kind, std::move(label), bytes});
  }

  template <Kokkos_Profiling_beginFunction tools::EventSet::*before>
  static void begin_kernel(const char* label, std::uint32_t device, std::uint64_t* kernel) {
    *kernel = 0;
    if (is_recorded()) add(Kind::kernel, label);
    pass_on(current()->before_.*before, label, device, kernel);
  }
  static void begin_fence(const char* label, std::uint32_t device, std::uint64_t* fence) {
    *fence = 0;
    if (is_recorded()) add_fence(label);
    pass_on(current()->before_.begin_fence, label, device, fence);
  }
  static void add_fence(std::string_view label) {
    if (label.starts_with("Kokkos::Tools::")) return;  // Kokkos' own, because a tool listens
    if (current()->copies_) current()->copy_fences_ = true;
    add(Kind::wait, std::string(label));
  }
  static void begin_copy(Kokkos_Profiling_SpaceHandle to_space, const char* to, const void* to_data,
                         Kokkos_Profiling_SpaceHandle from_space, const char* from, const void* from_data,
                         std::uint64_t bytes) {
    if (is_recorded()) {
      const bool is_value = std::string_view(from) == "(none)" || std::string_view(from) == "Scalar";
      add(is_value ? Kind::fill : Kind::copy, to, bytes);
      current()->copies_ = true;
      current()->copy_label_ = to;
    }
    pass_on(current()->before_.begin_deep_copy, to_space, to, to_data, from_space, from, from_data, bytes);
  }
  static void end_copy() {
    DeviceWork& work = *current();
    if (is_recorded()) {
      work.copies_ = false;
      if (std::exchange(work.copy_fences_, false)) add(Kind::wait, "copy to " + work.copy_label_);
    }
    pass_on(work.before_.end_deep_copy);
  }
  static void push_region(const char* name) {
    if (is_recorded()) {
      const bool is_product = parse_gemm_label(name).has_value();
      const bool waits = std::string_view(name).ends_with("::wait");
      const Kind kind = is_product ? Kind::product : waits ? Kind::wait : Kind::region;
      add(kind, name);
      current()->regions_.push_back(kind);
      if (kind == Kind::product) ++current()->products_;
      if (kind == Kind::wait) ++current()->waits_;
    }
    pass_on(current()->before_.push_region, name);
  }
  static void pop_region() {
    DeviceWork& work = *current();
    if (is_recorded() && !work.regions_.empty()) {  // it is empty if the region began before this object
      if (work.regions_.back() == Kind::product) --work.products_;
      if (work.regions_.back() == Kind::wait) --work.waits_;
      work.regions_.pop_back();
    }
    pass_on(work.before_.pop_region);
  }

  const std::thread::id thread_ = std::this_thread::get_id();
  const tools::EventSet before_ = tools::get_callbacks();
  std::vector<Entry> entries_;
  std::vector<Kind> regions_;             ///< open regions
  std::size_t products_ = 0, waits_ = 0;  ///< open regions of these kinds
  bool copies_ = false, copy_fences_ = false;
  std::string copy_label_;
};

}  // namespace mylos::tests
