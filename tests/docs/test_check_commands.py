"""Tests which lines check_commands.py takes for commands, and that it reports one that fails."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

import check_commands

PAGE = """Text, and `mylos train` in it.

    mylos train --model M \\
      --train T    # trains
    echo "a  b" | mylos tokenize

    questions.json
    $ no command

    $ mylos ask
    mylos answers
    $ mylos score
"""


class Commands(unittest.TestCase):
    def test_finds_lines_of_blocks_that_begin_with_a_program(self):
        self.assertEqual([(3, "mylos train --model M   --train T"), (5, 'echo "a  b" | mylos tokenize'), (10, "mylos ask"), (12, "mylos score")],
                         list(check_commands.commands(PAGE)))

    def test_job_commands_name_existing_scripts_and_variables(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        known = check_commands.exported("export MODEL=a TRAIN=b DEV=c")
        self.assertEqual("", check_commands.check_elsewhere(root, "OUTPUT=a MODE=sharded sbatch --nodes=2 train-gpu.sbatch", [], known))
        self.assertEqual("", check_commands.check_elsewhere(root, "qsub -v MODEL=a,TRAIN=t,OUTPUT=b train-gpu.pbs", []))
        self.assertEqual("train-gpu.sbatch needs MODEL, TRAIN, which the page does not give",
                         check_commands.check_elsewhere(root, "OUTPUT=a sbatch train-gpu.sbatch", []))
        self.assertEqual("compare.sbatch needs DEV, OUTPUT, which the page does not give",
                         check_commands.check_elsewhere(root, "MODEL=a TRAIN=b sbatch compare.sbatch", []))
        self.assertIn("train.sbatch", check_commands.check_elsewhere(root, "sbatch train.sbatch", []))
        self.assertIn("NOTHING", check_commands.check_elsewhere(root, "NOTHING=1 sbatch train-gpu.sbatch", []))

    def test_reports_commands_that_are_not_indented(self):
        page = "Text.\n\nOUTPUT=runs/long sbatch requeue.sbatch\n\n    OUTPUT=a sbatch b\nOUTPUT=a is set.\n"
        self.assertEqual([(3, "OUTPUT=runs/long sbatch requeue.sbatch")], list(check_commands.bare_commands(page)))

    def test_commands_that_run_elsewhere_name_an_existing_test(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        self.assertEqual("", check_commands.check_elsewhere(root, "spack -e . install", ["spack.flags"]))
        self.assertIn("no test", check_commands.check_elsewhere(root, "spack -e . install", ["app.Spack"]))
        self.assertEqual("", check_commands.check_elsewhere(root, "scripts/test", []))
        self.assertIsNone(check_commands.check_elsewhere(root, "mylos info", []))

    def test_reports_failed_commands_with_their_line(self):
        with tempfile.TemporaryDirectory() as folder:
            errors = check_commands.run([(1, "mylos info"), (7, "mylos nothing"), (9, "echo not reached")], pathlib.Path(folder),
                                      PROGRAM, "README.md")
        self.assertEqual(1, len(errors))
        self.assertRegex(errors[0], r"^7: mylos nothing\nexit code 2:")


if __name__ == "__main__":
    PROGRAM = pathlib.Path(sys.argv.pop())
    with contextlib.redirect_stdout(io.StringIO()):
        ended = unittest.main(exit=False)
    sys.exit(0 if ended.result.wasSuccessful() else 1)
