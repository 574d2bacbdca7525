"""One task raises an exception before a collective: it has failed, and the others get an error."""

import regatta_mpi as rg

if rg.world.rank == 1:
    raise RuntimeError("the cause")
try:
    rg.world.barrier()
except rg.TaskDied as error:
    assert error.task == 1 and "exited with status 1 without leaving" in str(error), error
    print("the others know")
