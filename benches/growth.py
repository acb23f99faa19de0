"""How time and memory of bayescope grow with images N, classes K, dimensions D, side of the images, and cores: the table of
docs/performance.md, Growth.

    python3 benches/growth.py --bayescope target/release/bayescope            # two minutes on a quiet machine, ten at most

Every point is a process of its own, measured whole (start and reading included, whose time is the first line): elapsed time, time of
all cores together, and the most memory it held (rusage). A point takes the median of --rounds (three); one that takes longer than ten
seconds is measured once. A curve ends before --seconds (540) are over, and says so. The last column is the exponent between the last
two points of a curve: 1 where time grows in proportion, 2 with the square. Worlds of other sides than 32 are trained here for one epoch
on 64 images of noise: what they show is worth nothing, how long they take is right.

More cores than this machine has are not measured. The last table says what Amdahl's law makes of one and two cores, which is the
most that more cores can bring: memory bandwidth, which they share, is not in it.

--json FILE writes everything. Load of the machine before and after is printed: on a busy machine believe the processor times.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

LONG = 10.0
CORES = [2, 4, 8, 16, 64]


class Clock:
    """What is left of the time that was given."""

    def __init__(self, seconds: float):
        self.end = time.monotonic() + seconds

    def left(self) -> float:
        return self.end - time.monotonic()


def run(command: list[str], threads: int) -> dict:
    """One process: seconds elapsed and of all cores, bytes at most."""
    environment = {**os.environ, "RAYON_NUM_THREADS": str(threads)}
    begun = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)}\n{said.decode(errors='replace')}")
    unit = 1 if sys.platform == "darwin" else 1024
    return {
        "elapsed": time.monotonic() - begun,
        "processor": usage.ru_utime + usage.ru_stime,
        "memory": usage.ru_maxrss * unit,
    }


def measure(command: list[str], threads: int, rounds: int) -> dict:
    """Medians of some rounds, or of one that takes long."""
    runs = [run(command, threads)]
    while len(runs) < rounds and runs[0]["elapsed"] < LONG:
        runs.append(run(command, threads))
    medians = {key: statistics.median(one[key] for one in runs) for key in runs[0]}
    elapsed = [one["elapsed"] for one in runs]
    return {**medians, "least": min(elapsed), "most": max(elapsed), "rounds": len(runs)}


def array(numbers: bytes, shape: tuple[int, ...]) -> bytes:
    """A .npy file of bytes."""
    head = repr({"descr": "|u1", "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(len(head) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + numbers


class Growth:
    """All curves of one machine."""

    def __init__(self, arguments: argparse.Namespace, folder: pathlib.Path):
        self.program, self.rounds, self.folder = arguments.bayescope, arguments.rounds, folder
        self.threads, self.clock = arguments.threads, Clock(arguments.seconds)
        self.curves: list[dict] = []

    def command(self, *words) -> list[str]:
        return [self.program, *map(str, words)]

    def curve(self, name: str, of: str, points, share: float) -> None:
        """Measures `points`, pairs of size and command, until `share` seconds or all of the time is spent."""
        begun, found, last = time.monotonic(), [], 0.0
        for size, command in points:
            spent = time.monotonic() - begun
            # The next point is expected to take four times as long as the one before, in every round.
            if found and (spent + 4 * last > share or 4 * last > self.clock.left()):
                break
            before = time.monotonic()
            found.append({"size": size, **measure(command, self.threads, self.rounds)})
            last = time.monotonic() - before
            print(f"{name}, {of} = {size}: {found[-1]['elapsed']:.2f} s", file=sys.stderr)
        self.curves.append({"name": name, "of": of, "points": found})

    def problem(self, classes: int, dims: int) -> str:
        """Random class means whose Bayes error is a few percent, whatever K and D are."""
        file = self.folder / f"k{classes}-d{dims}.json"
        distance = 4.0 + math.sqrt(2 * math.log(classes))
        rng, scale = random.Random(1), distance / math.sqrt(2 * dims)
        means = [[rng.gauss(0.0, scale) for _ in range(dims)] for _ in range(classes)]
        file.write_text(json.dumps({"means": means, "cov_diag": [1.0] * dims}))
        return str(file)

    def world(self, side: int, family: str) -> str:
        """A world of images of noise with this side, trained for one epoch."""
        images = self.folder / f"noise{side}"
        images.mkdir(exist_ok=True)
        rng, labels = random.Random(side), bytes(i % 4 for i in range(64))
        for part in ["train", "test"]:
            pixels = rng.randbytes(64 * side * side * 3)
            with zipfile.ZipFile(images / f"{part}.npz", "w") as file:
                file.writestr("x.npy", array(pixels, (64, side, side, 3)))
                file.writestr("y.npy", array(labels, (64,)))
        model = {
            "glow": "[model]\nhidden = 64\nlevels = 3\nsteps = 8\n",
            "tarflow": "[tarflow]\npatch = 4\nchannels = 128\nblocks = 6\nlayers = 1\nshared_map = true\n"
            'pixels = { noise = "gaussian", std = 0.05 }\n',
        }[family]
        spec = self.folder / f"{family}{side}.toml"
        spec.write_text(
            f'name = "{family}{side}"\n[data]\npath = "{images}"\npad_to = {side}\nheld_out = 8\n'
            f"{model}[training]\nepochs = 1\nbatch = 28\n"
        )
        folder = self.folder / f"{family}{side}"
        run(self.command("oracle", "train", spec, "--out", folder, "--device", "cpu"), self.threads)
        return str(folder / "oracle")

    def all(self) -> None:
        drawn = str(self.folder / "drawn.npz")
        sample = lambda world, n: self.command("sample", world, "--n", n, "--out", drawn, "--device", "cpu", "--force")
        self.curve("start: one digit sampled", "N", [(1, sample("mnist", 1))], 10)
        for world in ["mnist", "cells"]:
            self.curve(f"sample {world}", "N", [(n, sample(world, n)) for n in [500, 1000, 2000, 4000, 8000]], 60)
        sheets = []
        for n in [250, 500, 1000, 2000]:
            file = str(self.folder / f"digits{n}.npz")
            run(self.command("sample", "mnist", "--n", n, "--out", file, "--device", "cpu"), self.threads)
            sheets.append((n, self.command("posterior", "mnist", file, "--device", "cpu", "--json")))
        self.curve("posterior mnist", "N", sheets, 50)
        error = lambda k, d, tolerance: self.command("bayes-error", self.problem(k, d), "--tolerance", tolerance)
        self.curve("bayes-error to 1e-4, D = 256", "K", [(k, error(k, 256, 1e-4)) for k in [10, 20, 40, 80]], 70)
        self.curve("bayes-error to 2 %, D = 1,024", "K", [(k, error(k, 1024, 0.02)) for k in [125, 250, 500, 1000]], 60)
        dims = [256, 1024, 4096, 16384]
        self.curve("bayes-error to 1e-4, K = 10", "D", [(d, error(10, d, 1e-4)) for d in dims], 40)
        for family in ["glow", "tarflow"]:
            worlds = [(side, sample(self.world(side, family), 64)) for side in [16, 32, 64]]
            self.curve(f"sample 64 of a {family}", "side", worlds, 60)
        self.cores([("sample mnist, N = 2,000", sample("mnist", 2000)), ("sample cells, N = 500", sample("cells", 500)),
                    ("bayes-error, K = 40", error(40, 256, 1e-4))])

    def cores(self, tasks) -> None:
        """One and two cores; more by Amdahl's law."""
        self.amdahl = []
        for name, command in tasks:
            if self.clock.left() < 30 or (os.cpu_count() or 1) < 2:
                break
            one, two = (measure(command, threads, self.rounds)["elapsed"] for threads in [1, 2])
            parallel = min(max(2 * (one - two), 0.0), one)
            times = {cores: one - parallel + parallel / cores for cores in CORES}
            self.amdahl.append({"name": name, "one": one, "two": two, "parallel": parallel / one, "times": times})


def exponent(points: list[dict], key: str) -> str:
    """Slope between the last two points of a curve in logarithms."""
    if len(points) < 2:
        return ""
    (a, x), (b, y) = [(point["size"], point[key]) for point in points[-2:]]
    return f"{math.log(y / x) / math.log(b / a):.2f}"


def table(growth: Growth) -> None:
    print("| what | size | elapsed [rounds] | of all cores | memory | exponents of time, memory |\n|---|---|---|---|---|---|")
    for curve in growth.curves:
        for i, point in enumerate(curve["points"]):
            last = i + 1 == len(curve["points"])
            grows = f"{exponent(curve['points'], 'processor')}, {exponent(curve['points'], 'memory')}" if last and i else ""
            print(
                f"| {curve['name'] if i == 0 else ''} | {curve['of']} = {point['size']:,} "
                f"| {point['elapsed']:.2f} s [{point['least']:.2f}, {point['most']:.2f}] | {point['processor']:.2f} s "
                f"| {point['memory'] / 1e6:.0f} MB | {grows} |"
            )
    heads = " | ".join(f"{cores} cores" for cores in CORES)
    print(f"\n| measured | 1 core | 2 cores | part that is shared out | {heads} |\n|{'---|' * (4 + len(CORES))}")
    for row in growth.amdahl:
        times = " | ".join(f"{row['times'][cores]:.2f} s" for cores in CORES)
        print(f"| {row['name']} | {row['one']:.2f} s | {row['two']:.2f} s | {100 * row['parallel']:.0f} % | {times} |")
    print("\nThe columns after *shared out* are Amdahl's law, not measurements.")


def processor() -> str:
    """Its name."""
    info = pathlib.Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.processor())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bayescope", required=True)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    before = os.getloadavg()[0]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        growth = Growth(arguments, pathlib.Path(folder))
        growth.all()
    print(f"{processor()}, {os.cpu_count()} cores, {arguments.threads} threads, {time.strftime('%d %B %Y')}, "
          f"{time.monotonic() - begun:.0f} s in all; load {before:.1f} before, {os.getloadavg()[0]:.1f} after\n")
    table(growth)
    if arguments.json:
        arguments.json.write_text(json.dumps({"curves": growth.curves, "cores": growth.amdahl}, indent=1))


if __name__ == "__main__":
    main()
