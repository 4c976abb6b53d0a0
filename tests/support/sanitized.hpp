#pragma once

/// True if the address sanitizer overrides malloc and uses additional memory.
namespace mylos::tests {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool heap_is_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr bool heap_is_sanitized = true;
#else
inline constexpr bool heap_is_sanitized = false;
#endif
#else
inline constexpr bool heap_is_sanitized = false;
#endif

}  // namespace mylos::tests
