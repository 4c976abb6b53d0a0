#pragma once

#include "app/options/arguments.hpp"
#include "app/program/compute.hpp"

#include <nlohmann/json_fwd.hpp>

/// The benchmarks of `mylos bench`, and the description of the program that each prints.
namespace mylos::app {

/// Times the matrix products of a model's layer with each provider.
int bench_gemm(const Arguments& arguments);

/// Times whole training steps of a model.
int bench_step(const Arguments& arguments);

/// Times the tokenization of a data set's texts, with offsets, on one thread.
int bench_tokenize(const Arguments& arguments);

/// Times collectives between ranks, by array size.
int bench_collectives(const Arguments& arguments);

/// Untimed rounds before the timed ones.
inline constexpr std::size_t bench_warm_ups = 2;

/// Returns the named GEMM providers, by default all exact ones; with --tf32, also the TF32 provider.
std::vector<std::string> timed_providers(const Arguments& arguments);

/// Version, commit, compiler, build type, device and threads, as JSON and as one printed line.
nlohmann::ordered_json bench_context(std::size_t threads = default_threads());
void print_bench_context(std::size_t threads = default_threads());

}  // namespace mylos::app
