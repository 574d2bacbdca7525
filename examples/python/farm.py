"""A farm: 200 pieces of work on four workers, one of which is killed in the middle."""

import regatta_mpi as rg


def collatz(start):
    """Returns the number from start to start + 999 with the longest Collatz sequence."""

    def length(n):
        steps = 0
        while n != 1:
            n = 3 * n + 1 if n % 2 else n // 2
            steps += 1
        return steps

    return max(range(start, start + 1000), key=length)


if __name__ == "__main__" and rg.world.rank == 0:
    with rg.Executor(4) as executor:
        futures = [executor.submit(collatz, 1 + 1000 * n) for n in range(200)]
        futures[20].result()
        victim = executor.workers[0]
        rg.kill(victim)
        found = [future.result() for future in futures]
        assert found[0] == 871 and len(found) == 200
        print(f"all {len(found)} results, though worker {victim} was killed; {executor.restarts} was started in its place")
