"""The checks of check_tree.py must be able to fail: each is run on a small tree that breaks its rule, and on one that keeps it."""

import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parent))
import check_tree


class CheckTree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)

    def tearDown(self):
        self.folder.cleanup()

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def test_arrow_against_the_direction(self):
        self.write("nn/bert.hpp", "")
        self.write("data/squad.cpp", '#include "nn/bert.hpp"\n')
        self.assertEqual(
            list(check_tree.check_includes(self.root)), ["data/squad.cpp:1: data must not include nn (nn/bert.hpp)"]
        )

    def test_arrow_along_the_direction(self):
        self.write("nn/bert.hpp", "")
        self.write("train/task.cpp", '#include <vector>\n#include "nn/bert.hpp"\n')
        self.assertEqual(list(check_tree.check_includes(self.root)), [])

    def test_include_that_is_not_from_the_root(self):
        self.write("nn/bert.hpp", "")
        self.write("nn/bert.cpp", '#include "bert.hpp"\n')
        self.assertEqual(
            list(check_tree.check_includes(self.root)), ['nn/bert.cpp:1: "bert.hpp" is not a file from the root of the tree']
        )

    def test_vendor_in_the_wrong_file(self):
        self.write("nn/bert.cpp", "int n = omp_get_max_threads();\n")
        self.assertEqual(len(list(check_tree.check_vendors(self.root))), 1)

    def test_vendor_in_its_file_or_a_comment(self):
        self.write("core/device.hpp", "int n = omp_get_max_threads();\n")
        self.write("nn/bert.cpp", "// on CUDA, cudaMalloc would do\n")
        self.assertEqual(list(check_tree.check_vendors(self.root)), [])

    def test_file_too_long(self):
        self.write("nn/bert.cpp", "\n" * 501)
        self.write("nn/loss.cpp", "\n" * 500)
        self.assertEqual(list(check_tree.check_lengths(self.root)), ["nn/bert.cpp: 501 lines; split it (500 is the most)"])

    def test_source_that_no_list_names(self):
        self.write("nn/CMakeLists.txt", "mylos_folder(nn SOURCES bert.cpp)")
        self.write("nn/bert.cpp", "")
        self.write("nn/loss.cpp", "")
        self.assertEqual(list(check_tree.check_sources(self.root)), ["nn/loss.cpp: no CMakeLists.txt lists it"])


if __name__ == "__main__":
    unittest.main()
