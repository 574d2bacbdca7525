"""JAX's collectives by MPI and by gloo: a jitted sum over processes, process_allgather."""
import sys, time
import jax, numpy as np
import regatta_mpi as rg
jax.config.update("jax_platforms","cpu")
jax.config.update("jax_cpu_collectives_implementation",sys.argv[1])
n,me=rg.world.size,rg.world.rank
jax.distributed.initialize("127.0.0.1:"+sys.argv[2],num_processes=n,process_id=me)
import jax.numpy as jnp
from jax.experimental import multihost_utils as m
from jax.sharding import Mesh,PartitionSpec as P,NamedSharding
mesh=Mesh(np.array(jax.devices()),("a",))
split,whole=NamedSharding(mesh,P("a")),NamedSharding(mesh,P())
def timed(f,times):
    f(); f(); best=[]
    for _ in range(5):
        t=time.perf_counter()
        for _ in range(times): f()
        best.append((time.perf_counter()-t)/times)
    return sorted(best)[2]*1e6
for elements,times in ((256,300),(262144,60),(4194304,8)):
    a=jax.make_array_from_process_local_data(split,np.ones((1,elements),np.float32))
    s=jax.jit(lambda x:x.sum(0),out_shardings=whole)
    us=timed(lambda:jax.block_until_ready(s(a)),times)
    if me==0: print(sys.argv[1],n,"sum",elements*4,"%.0f us"%us,flush=True)
x=np.ones(1000)
us=timed(lambda:m.process_allgather(x),40)
if me==0: print(sys.argv[1],n,"process_allgather 8000","%.0f us"%us,flush=True)
