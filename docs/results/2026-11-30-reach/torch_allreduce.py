"""all_reduce of float32 of torch.distributed, regatta or gloo."""
import sys, time, torch, torch.distributed as dist, os
import regatta_mpi as rg, regatta_mpi.torch
b=sys.argv[1]
torch.set_num_threads(1)
if b=="gloo":
    os.environ.update(MASTER_ADDR="127.0.0.1",MASTER_PORT=sys.argv[2],RANK=str(rg.world.rank),WORLD_SIZE=str(rg.world.size))
    os.environ.setdefault("GLOO_SOCKET_IFNAME","lo")
    dist.init_process_group("gloo")
else: dist.init_process_group("regatta",init_method="regatta://")
r=dist.get_rank(); n=dist.get_world_size()
for size,times in ((1024,1000),(1<<20,60),(64<<20,3)):
    t=torch.zeros(size//4)
    for _ in range(2): dist.all_reduce(t)
    all=[]
    for _ in range(5):
        dist.barrier(); s=time.perf_counter()
        for _ in range(times): dist.all_reduce(t)
        all.append((time.perf_counter()-s)/times*1e6)
    if r==0: print(b,n,size,"%.1f us"%sorted(all)[2],flush=True)
dist.destroy_process_group()
