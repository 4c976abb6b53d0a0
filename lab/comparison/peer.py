"""The process of a peer, which computes only while it answers a request (lab/peers/serving.py is the other end)."""

import contextlib
import json
import os
import pathlib
import socket
import subprocess
import sys

from comparison import machine
from comparison.environment import PEERS, PeersMissing, cache_directory

# Makes the C library's allocator keep its memory. Otherwise PyTorch's large buffers are unmapped and faulted in again in every step,
# which took a fifth of its time on the machine where this was tried.
KEEPS_MEMORY = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": str(1 << 36), "MALLOC_TOP_PAD_": str(1 << 28)}
# PyTorch multiplies matrices with MKL, which uses AVX-512 only on Intel CPUs. This function makes MKL use it on others.
SAYS_INTEL = "int mkl_serv_intel_cpu_true(void) { return 1; }"


def tuned_environment(directory):
    """Returns environment variables that make PyTorch fast. On AMD CPUs, a small library is written into `directory`."""
    tuned = dict(KEEPS_MEMORY)
    if machine.cpu_fields().get("vendor_id") == "AuthenticAMD":
        library = pathlib.Path(directory) / "says-intel.so"
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)]
        try:
            subprocess.run(command, input=SAYS_INTEL, text=True, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            print("no C compiler: PyTorch runs without AVX-512 in its matrix products", file=sys.stderr)
        else:
            tuned["LD_PRELOAD"] = str(library)
    return tuned


class Peer:
    def __init__(self, python, script, threads, log, tuned=False, more=None):
        """`more`: additional environment variables of this process."""
        # PyTorch compiles in its own process, unless `more` says otherwise: workers would go on beside the next turn.
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                           TORCHINDUCTOR_COMPILE_THREADS="1", TORCHINDUCTOR_CACHE_DIR=str(cache_directory() / "inductor")) | (more or {})
        if tuned:
            environment |= tuned_environment(pathlib.Path(log).parent)
        self.name = script
        self.log = log
        with open(log, "w", encoding="utf-8") as errors:
            self.process = subprocess.Popen([python, PEERS / script], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=errors, text=True, encoding="utf-8", env=environment)

    def ask(self, command, **request):
        """Sends a request and returns the reply. Errors: PeersMissing, with the peer's error."""
        self.send(command, **request)
        return self.receive()

    def send(self, command, **request):
        with contextlib.suppress(BrokenPipeError):  # receive() reports a process that has ended
            self.process.stdin.write(json.dumps({"do": command, **request}) + "\n")
            self.process.stdin.flush()

    def receive(self):
        line = self.process.stdout.readline()
        if not line:
            raise PeersMissing(f"{self.name} ended{self.last_words()}; its log: {self.log}")
        reply = json.loads(line)
        if "error" in reply:
            raise PeersMissing(f"{self.name}: {reply['error']}")
        return reply

    def last_words(self):
        """Returns the last line of the log in parentheses, or nothing: the log may be deleted before someone reads it."""
        lines = pathlib.Path(self.log).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return f" ({lines[-1].strip()})" if lines else ""

    def end(self):
        """Ends the process; returns its peak resident memory in bytes."""
        self.process.stdin.close()
        _, _, usage = os.wait4(self.process.pid, 0)
        self.process.returncode = 0
        self.process.stdout.close()
        return usage.ru_maxrss * 1024

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


class PeerGroup:
    """Processes of one job with one thread each, which get every request together."""

    def __init__(self, python, script, ranks, log, tuned=False):
        self.peers = []
        port = free_port()
        for rank in range(ranks):
            more = {"RANK": str(rank), "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                    "GLOO_SOCKET_IFNAME": "lo"}
            self.peers.append(Peer(python, script, 1, f"{log}.{rank}", tuned, more))

    def ask(self, command, **request):
        """Sends a request to all processes and returns their replies. Errors: PeersMissing, with the first error of a process."""
        for peer in self.peers:
            peer.send(command, **request)
        return [peer.receive() for peer in self.peers]

    def __enter__(self):
        return self

    def __exit__(self, *reason):
        for peer in self.peers:
            peer.__exit__(*reason)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]
