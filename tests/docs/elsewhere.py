"""Commands of the documentation that check_commands.py does not run: (pattern, kind, where).

kind "ctest": the ctest tests whose names match `where` cover the command. "ci": the step `where` of .ci/run covers it.
"not here": nothing covers it, for the reason `where`; it is printed as skipped.
"""

COMMANDS = [
    # Building in the tree itself.
    (r"^git clone ", "not here", "the tree is there"),
    (r"^scripts/demo", "not here", "builds and trains for minutes; run by hand in a fresh clone"),
    (r"^scripts/test$", "ci", "scripts/test"),
    (r"^(export MYLOS_DEPENDENCIES=given|scripts/(build|dependencies))$|^cmake --build ", "ci", "scripts/test"),
    (r"^scripts/build cuda-", "ci", "scripts/test-cuda"),
    (r"^scripts/check-architectures aarch64$|^cmake --preset aarch64 ", "ci", "scripts/check-architectures"),
    (r"^scripts/build hip-", "ci", "scripts/check-architectures --quick"),
    (r"^cmake -S \. -B build/(site|debian)", "ctest", r"^install\.configures_from_modules$"),
    (r"^cmake --install ", "ctest", r"^install\.tree$"),
    (r"^cmake -S /opt/mylos/share/mylos/smoke|^ctest --test-dir /tmp/mylos-smoke", "ctest", r"^install\.smoke$"),
    # Installing by other means.
    (r"^spack ", "ctest", r"^spack\."),
    (r"apptainer ", "not here", "Apptainer and an image of Debian are not to be had"),
    (r"^srun .*mylos doctor", "ctest", r"^jobs\.ranks$"),
    (r"^sbatch runs/sweep/sweep\.sbatch$", "ctest", r"^jobs\.restarts$"),
    # GPUs.
    (r"^lab/bundle-gpu", "not here", "compiles for 20 minutes"),
    # TensorBoard is a server; the test reads its files with the same package.
    (r"^tensorboard ", "ctest", r"IsReadByTensorBoard"),
    # Commands that need a network.
    (r"^mylos fetch ", "ctest", r"Fetch"),
    # Commands that write to a fixed path.
    (r"^mylos train .*--output_dir /tmp/debug_squad/$", "ctest", r"RunQa\.TheReadmesLineRuns$"),
    (r"^mylos train .*--output_dir /tmp/debug_squad_v2/$", "ctest", r"RunQa\.SoDoesTheOneOfSquad2$"),
    # Programs that are not in the sandbox.
    (r"^build/release/bench/bench_scale", "ctest", r"^bench\.scale$"),
    (r"^build/release/bench/bench_", "ctest", r"^bench\.programs$"),
    # The laboratory, which takes minutes or hours.
    (r"^lab/", "ci", "lab/check"),
]
