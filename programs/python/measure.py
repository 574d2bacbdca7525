"""measure.py REGATTA OUT.csv: regatta_mpi and mpi4py, or the executors, in turn; LAUNCHES of each. Run it by the environment's interpreter.

The variable ONLY names parts of it: pair, tasks, import.
"""

import csv
import os
import pathlib
import statistics
import subprocess
import sys
import time

LAUNCHES = int(os.environ.get("LAUNCHES", 5))
here = pathlib.Path(__file__).parent
regatta, out = sys.argv[1:]
python = sys.executable
found = {}


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True).stdout


def note(what, library, value):
    found.setdefault((what, library), []).append(float(value))
    print(what, library, value, flush=True)


only = os.environ.get("ONLY", "pair tasks import").split()
for _ in range(LAUNCHES):
    if "pair" in only:
        for library in ("own", "mpi4py"):
            for line in run(regatta, "run", "-n", 2, python, here / "pair.py", library).splitlines():
                what, value = line.split(",")
                note(what + " [us]", library, value)
    if "import" in only:
        for library, program in (
            ("bare", "pass"),
            ("own", "import regatta_mpi as rg; rg.Group"),
            ("own, joined", "import regatta_mpi as rg; rg.world"),
            ("mpi4py", "from mpi4py import MPI"),
        ):
            times = []
            for _ in range(10):
                begin = time.perf_counter()
                run(python, "-c", program)
                times.append(time.perf_counter() - begin)
            note("start [ms]", library, statistics.median(times) * 1e3)
    if "tasks" in only:
        for work in ("sleep", "compute"):
            for library in ("own", "loky", "mpi4py"):
                alone = [python, here / "tasks.py", library, work]
                words = [regatta, "run", "-n", 5, *alone] if library == "mpi4py" else alone
                note(f"10 000 calls, {work} 1 ms [s]", library, run(*words))
with open(out, "w", newline="") as file:
    rows = csv.writer(file, lineterminator="\n")
    rows.writerow(["measurement", "library", "median", "least", "most", "launches"])
    for (what, library), values in found.items():
        rows.writerow([what, library, f"{statistics.median(values):.4g}", f"{min(values):.4g}", f"{max(values):.4g}", len(values)])
