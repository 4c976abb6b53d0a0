"""Ranks: one over NCCL; several that share the GPU, over NCCL (nccl_nodes.py) and over MPI by way of host memory; and, on machines with
several GPUs, one rank per GPU over NCCL."""

from validation import nccl_nodes
from validation.commands import OutOfTime, succeed
from validation.jobs import run_jobs
from validation.launching import Launch, test_ranks, train_ranks
from validation.tests import run_suites, suites_of

# Checks of several GPUs.
NCCL = "nccl"
PART = "ranks"
RANKS = 2
# Programs whose tests run on two ranks, the most needed first.
PROGRAMS = ["test_communicator", "test_modes", "test_checkpoint_ranks", "test_many_ranks"]


def nccl_alone(session, clock):
    """Runs the tests of NCCL on one GPU: loading, connecting without blocking, the order of streams, aborting."""
    program = "test_nccl_alone"
    path = session.bundle.program("gpu", program)
    if not path.is_file():
        return session.record.leave_out(PART, program, "it is not in the bundle")
    listing = succeed([path, "--gtest_list_tests"], clock.limit(60), session.names).output
    suites = [(program, name, tests) for name, tests in suites_of(listing).items()]
    counts = run_suites(session, clock, PART, suites)
    if counts.get("skipped"):
        session.record.leave_out(PART, program, f"{counts['skipped']} tests are skipped: NCCL cannot be loaded (mylos doctor says why)")
    return None


def nodes_on_one_gpu(session, clock):
    if not session.wants("nodes"):
        return
    obstacle = nccl_nodes.nccl_obstacle(session)
    if obstacle:
        return session.record.leave_out(nccl_nodes.PART, "all", obstacle)
    try:
        with nccl_nodes.service(session, clock) as names:
            session.record.figure("sharing", how="the Multi-Process Service" if names else "time slices")
            run_jobs(session, "ranks", nccl_nodes.PART, nccl_nodes.node_jobs(session, clock, names))
    except OutOfTime as reason:
        session.record.leave_out(nccl_nodes.PART, "all", reason)


def jobs_of(session, clock):
    """Yields (part, name, job) over MPI and on several GPUs, the most needed first."""
    two = Launch(RANKS)
    yield PART, "train replicated", lambda: train_ranks(session, clock, PART, "mpi", "replicated", two)
    for program in PROGRAMS:
        yield PART, program, lambda program=program: test_ranks(session, clock, PART, program, f"-{nccl_nodes.OVER_NCCL}", two)
    yield PART, "train sharded", lambda: train_ranks(session, clock, PART, "mpi", "sharded", two)
    if session.gpus >= RANKS:
        yield NCCL, "nccl test_communicator", lambda: test_ranks(session, clock, NCCL, "test_communicator", nccl_nodes.OVER_NCCL, two)
        for mode in ("replicated", "sharded"):
            yield NCCL, f"nccl train {mode}", lambda mode=mode: train_ranks(session, clock, NCCL, "nccl", mode, two)


def ranks(session, clock):
    run_jobs(session, "ranks", PART, [("test_nccl_alone", lambda: nccl_alone(session, clock))])
    nodes_on_one_gpu(session, clock)
    for part, name, job in jobs_of(session, clock):
        run_jobs(session, "ranks", part, [(name, job)])
    if session.gpus < RANKS and session.wants("nccl"):
        session.record.leave_out(NCCL, "ranks on several GPUs", f"{session.gpus} GPU is visible")
