! Bodies that attract each other, on MPI. Its errors end the program.
program main
   use mpi
   use bodies, only: nbody
   integer :: rank, size, code, status
   call MPI_Init(code)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
   call MPI_Comm_size(MPI_COMM_WORLD, size, code)
   status = nbody(rank, size)
   call MPI_Finalize(code)
   call exit(status)
end program

subroutine sum_of_all(values, count)
   use mpi
   integer, intent(in) :: count
   double precision, intent(inout) :: values(count)
   integer :: code
   call MPI_Allreduce(MPI_IN_PLACE, values, count, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, code)
end subroutine

subroutine pass_on(values, count, coming, room)
   use mpi
   integer, intent(in) :: count, room
   double precision, intent(in) :: values(count)
   double precision, intent(inout) :: coming(room)
   integer :: rank, size, code
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
   call MPI_Comm_size(MPI_COMM_WORLD, size, code)
   call MPI_Sendrecv(values, count, MPI_DOUBLE_PRECISION, mod(rank + 1, size), 1, coming, room, MPI_DOUBLE_PRECISION, &
      mod(rank + size - 1, size), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
end subroutine
