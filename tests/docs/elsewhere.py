"""Commands of the documentation that check_commands.py does not run: (pattern, kind, where).

kind "ctest": the tests of ctest whose names `where` finds run what the command runs. "ci": `where` is the step of .ci/run that does.
"not here": nothing does, and `where` says why; it is printed as skipped.
"""

COMMANDS = [
    # Building, in the tree itself.
    (r"^git clone ", "not here", "the tree is there"),
    (r"^scripts/demo", "not here", "builds and trains for minutes; run by hand in a fresh clone"),
    (r"^scripts/test$", "ci", "scripts/test"),
    (r"^(export MYLOS_DEPENDENCIES=given|scripts/(build|dependencies))$|^cmake --build ", "ci", "scripts/test"),
    (r"^scripts/build cuda-", "ci", "scripts/test-cuda"),
    (r"^cmake -S \. -B build/(site|debian)", "ctest", r"^install\.configures_from_modules$"),
    (r"^cmake --install ", "ctest", r"^install\.tree$"),
    (r"^cmake -S /opt/mylos/share/mylos/smoke|^ctest --test-dir /tmp/mylos-smoke", "ctest", r"^install\.smoke$"),
    # Installing by other means.
    (r"^spack ", "ctest", r"^spack\."),
    (r"apptainer ", "not here", "Apptainer and an image of Debian are not to be had"),
    (r"^srun .*mylos doctor", "ctest", r"^jobs\.doctor$"),
    # GPUs.
    (r"^scripts/bundle-gpu", "not here", "compiles for 20 minutes"),
    (r"^scripts/validate-gpu", "ctest", r"^bench\.validation$"),
    # A server, whose files the test reads as it does.
    (r"^tensorboard ", "ctest", r"IsReadByTensorBoard"),
    # What needs a network.
    (r"^mylos fetch ", "ctest", r"Fetch"),
    # What writes to a place that readers share.
    (r"^mylos train .*--output_dir /tmp/debug_squad/$", "ctest", r"RunQa\.TheReadmesLineRuns$"),
    (r"^mylos train .*--output_dir /tmp/debug_squad_v2/$", "ctest", r"RunQa\.SoDoesTheOneOfSquad2$"),
    # Programs that the sandbox has not.
    (r"^build/release/bench/bench_", "ctest", r"^bench\.programs$"),
    # Benchmarks that take minutes, beside peers.
    (r"^bench/(compare|scaling|checkpoint|predict_scaling)( |$)", "ctest", r"^bench\.comparison$"),
]
