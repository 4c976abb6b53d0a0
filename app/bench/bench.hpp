#pragma once

#include "app/options/arguments.hpp"
#include "app/program/compute.hpp"

#include <nlohmann/json.hpp>

/// The benchmarks, and what each of them says of the program it ran.
namespace mylos::app {

/// Matrix products of a model's layer, by each provider.
int bench_gemm(const Arguments& arguments);

/// Whole training steps of a model on questions.
int bench_step(const Arguments& arguments);

/// Token ids and offsets of a data set's texts, on one thread.
int bench_tokenize(const Arguments& arguments);

/// Exchanges between ranks, by size.
int bench_collectives(const Arguments& arguments);

/// Rounds before the timed ones.
inline constexpr std::size_t bench_warm_ups = 2;

/// Those that were named, or all that multiply floats as they are; and the one of TF32 where that is asked for.
std::vector<std::string> timed_providers(const Arguments& arguments);

/// Version, commit, compiler, build type, device and threads: as JSON, and printed on one line.
nlohmann::ordered_json bench_context(std::size_t threads = default_threads());
void print_bench_context(std::size_t threads = default_threads());

}  // namespace mylos::app
