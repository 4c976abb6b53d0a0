#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <utility>

namespace mylos {

/// A map that keeps the `most` most recently used entries (LRU cache).
template <class Key, class Value>
class RecentlyUsed {
 public:
  explicit RecentlyUsed(std::size_t most) : most_(most) {}

  std::size_t size() const { return index_.size(); }
  std::size_t most() const { return most_; }

  /// Returns the entry at `key`. If there is none, creates it by make(), after removing the least recently used entry
  /// if the map is full. The reference is valid until the next call.
  template <class Make>
  Value& get(const Key& key, const Make& make) {
    const auto found = index_.find(key);
    if (found != index_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->second;
    }
    if (index_.size() >= most_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, make());
    index_.emplace(key, entries_.begin());
    return entries_.front().second;
  }

 private:
  using Entries = std::list<std::pair<Key, Value>>;

  std::size_t most_;
  Entries entries_;  ///< most recently used first
  std::map<Key, typename Entries::iterator> index_;
};

}  // namespace mylos
