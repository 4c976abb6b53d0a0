"""The network of lab/test-nodes: the rates of its links, the bytes that they carry, and commands on its ranks."""

import os
import pathlib
import subprocess
import sys
import threading

ROOT = pathlib.Path(__file__).resolve().parents[2]
NODES, OF_NODE = 4, 2
RANKS = NODES * OF_NODE

PROBE = """
import socket, sys, time
if sys.argv[1] == "take":
    with socket.create_server(("", 5000)) as server:
        link, _ = server.accept()
        begin, count = time.monotonic(), 0
        while data := link.recv(1 << 20):
            count += len(data)
        print(count / (time.monotonic() - begin))
else:
    for _ in range(100):
        try:
            link = socket.create_connection((sys.argv[2], 5000))
            break
        except OSError:
            time.sleep(0.02)
    begin = time.monotonic()
    while time.monotonic() - begin < 2:
        link.sendall(bytes(1 << 16))
"""


class Nodes:
    """The links of the nodes, and commands on all ranks."""

    def __init__(self, build, mpiexec, name, directory):
        self.mylos, self.mpiexec, self.name, self.directory = str(build / "mylos"), mpiexec, name, directory
        # Open MPI counts ranks of different hosts as ranks of different nodes.
        (directory / "known").write_text("".join(f"node{node} slots={OF_NODE}\n" for node in range(NODES)))
        (directory / "unknown").write_text("".join(f"node{node}{'ab'[rank]} slots=1\n" for node in range(NODES) for rank in range(OF_NODE)))
        self.environment = dict(os.environ, MYLOS_NODES=name, OMP_NUM_THREADS="1", OMP_PROC_BIND="false", XDG_CACHE_HOME=str(directory / "cache"),
                                OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")

    def namespace(self, node):
        return f"{self.name}-{node}"

    def set_rate(self, mbit):
        for node in range(NODES):
            for namespace, device in ((f"{self.name}-switch", f"node{node}"), (self.namespace(node), "eth0")):
                subprocess.run(["tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", "tbf", "rate", f"{mbit}mbit", "burst", "256kb",
                                "limit", "4mb"], check=True)

    def carried(self):
        """Bytes that each node has sent and received, as the bridge's end of its link counts them."""
        read = lambda node, name: int(pathlib.Path(f"/sys/class/net/node{node}/statistics/{name}_bytes").read_text())
        return [(read(node, "rx"), read(node, "tx")) for node in range(NODES)]

    def segments(self):
        """TCP segments that the nodes have sent, and how many of them again."""
        sent = again = 0
        for node in range(NODES):
            text = subprocess.run(["ip", "netns", "exec", self.namespace(node), "cat", "/proc/net/snmp"], check=True, capture_output=True,
                                  text=True).stdout
            names, values = [line.split() for line in text.splitlines() if line.startswith("Tcp:")]
            tcp = dict(zip(names, values))
            sent, again = sent + int(tcp["OutSegs"]), again + int(tcp["RetransSegs"])
        return sent, again

    def stream_rate(self):
        """The smallest rate in Mbit/s of TCP streams from each node to the next, all at the same time."""
        start = lambda node, *words: subprocess.Popen(["ip", "netns", "exec", self.namespace(node), "python3", "-c", PROBE, *words],
                                                      stdout=subprocess.PIPE, text=True)
        taking = [start(node, "take") for node in range(NODES)]
        giving = [start(node, "give", f"10.0.0.{(node + 1) % NODES + 1}") for node in range(NODES)]
        rates = [float(process.communicate(timeout=60)[0]) for process in taking]
        for process in giving:
            process.communicate(timeout=60)
        return min(rates) * 8e-6

    def run(self, knows, *words):
        """Standard output of the program on all ranks. Errors: SystemExit where it fails."""
        network = "10.0.0.0/24"
        launch = [self.mpiexec, "--hostfile", str(self.directory / ("known" if knows else "unknown")), "-n", str(RANKS), "--bind-to", "none",
                  "--mca", "plm_rsh_agent", str(ROOT / "lab/nodes/on-node"), "--mca", "orte_tmpdir_base", str(self.directory),
                  "--mca", "btl", "self,vader,tcp", "--mca", "btl_tcp_if_include", network, "--mca", "oob_tcp_if_include", network,
                  "--mca", "mpi_yield_when_idle", "1"]
        command = [*launch, self.mylos, *map(str, words)]
        done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
        return done.stdout

    def alone(self, *words):
        """Standard output of the program on one rank without a launcher."""
        return subprocess.run([self.mylos, *map(str, words)], env=self.environment, check=True, capture_output=True, text=True).stdout


class LinkCounts(threading.Thread):
    """Reads what the links have carried each time that a run has written another step."""

    def __init__(self, nodes, output):
        super().__init__(daemon=True)
        self.nodes, self.file, self.counts, self.ended = nodes, output / "metrics.jsonl", [], threading.Event()

    def run(self):
        while not self.ended.wait(0.005):
            try:
                steps = self.file.read_bytes().count(b'"kind":"step"')
            except OSError:
                continue
            while len(self.counts) < steps:
                self.counts.append(self.nodes.carried())
