#pragma once

#include "tests/app/tiny_run.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

/// Tests of the program that apply to every model family. They are written once and run for each family.
namespace mylos::tests {

/// A fixture derived from TinyRun, parameterised by the family.
template <class Runs>
class OnFamily : public Runs, public testing::WithParamInterface<const Family*> {
 protected:
  OnFamily() : Runs(*testing::WithParamInterface<const Family*>::GetParam()) {}
};

inline const std::vector<const Family*>& families() {
  static const std::vector<const Family*> all = {&bert_family(), &llama_family(), &resnet_family()};
  return all;
}

inline std::string family_name(const testing::TestParamInfo<const Family*>& info) { return info.param->name; }

}  // namespace mylos::tests

/// Runs the TEST_P of a fixture for every family.
#define MYLOS_FOR_EACH_FAMILY(fixture) \
  INSTANTIATE_TEST_SUITE_P(Families, fixture, testing::ValuesIn(mylos::tests::families()), mylos::tests::family_name)
