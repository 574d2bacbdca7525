"""10 000 calls on 4 workers: tasks.py own|loky|mpi4py sleep|compute. Prints the seconds, without the start of the workers."""

import sys
import time


def sleep(_):
    time.sleep(0.001)
    return 1


def compute(_):
    end = time.thread_time() + 0.001
    while time.thread_time() < end:
        pass
    return 1


def measure(executor, work):
    assert sum(executor.map(work, range(64))) == 64
    begin = time.perf_counter()
    futures = [executor.submit(work, n) for n in range(10_000)]
    assert sum(future.result() for future in futures) == 10_000
    print(f"{time.perf_counter() - begin:.4f}", flush=True)


if __name__ == "__main__":
    library, work = sys.argv[1], globals()[sys.argv[2]]
    if library == "own":
        import regatta_mpi

        with regatta_mpi.Executor(4) as executor:
            measure(executor, work)
    elif library == "loky":
        import loky

        executor = loky.get_reusable_executor(4, timeout=60)
        measure(executor, work)
        executor.shutdown()
    else:
        from mpi4py.futures import MPICommExecutor

        with MPICommExecutor() as executor:
            if executor is not None:
                measure(executor, work)
