"""For a minute one of four workers is killed each second, while calls of 5 ms run: kills.py SECONDS."""

import sys
import threading
import time

import regatta_mpi as rg


def work(n):
    time.sleep(0.005)
    return n


if __name__ == "__main__":
    seconds = float(sys.argv[1])
    results, killed, lock = [], [], threading.Lock()

    def done(future):
        with lock:
            results.append(future.result())

    with rg.Executor(4, retries=10) as executor:
        end = time.monotonic() + seconds

        def kill():
            while time.monotonic() < end:
                time.sleep(1)
                workers = executor.workers
                victim = workers[len(killed) % len(workers)]
                try:
                    rg.kill(victim)
                except ValueError:
                    continue  # it is being replaced
                killed.append(victim)

        killer = threading.Thread(target=kill)
        killer.start()
        submitted = 0
        while time.monotonic() < end:
            future = executor.submit(work, submitted)
            future.add_done_callback(done)
            submitted += 1
            if submitted % 2000 == 0:
                future.result()
        killer.join()
    assert sorted(results) == list(range(submitted)), "lost or doubled"
    print(f"{submitted} calls, {len(results)} results, each once; {len(killed)} workers killed, {executor.restarts} started in their place")
