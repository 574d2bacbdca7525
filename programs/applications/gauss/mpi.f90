! Gaussian elimination, on MPI. Its errors end the program.
program main
   use mpi
   use elimination, only: gauss
   integer :: rank, size, code, status
   call MPI_Init(code)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
   call MPI_Comm_size(MPI_COMM_WORLD, size, code)
   status = gauss(rank, size)
   call MPI_Finalize(code)
   call exit(status)
end program

! MPI finds a number with its place, which is of the same type in Fortran.
subroutine largest_of_all(value, task)
   use mpi
   double precision, intent(inout) :: value
   integer, intent(inout) :: task
   double precision :: pair(2)
   integer :: code
   pair = [value, dble(task)]
   call MPI_Allreduce(MPI_IN_PLACE, pair, 1, MPI_2DOUBLE_PRECISION, MPI_MAXLOC, MPI_COMM_WORLD, code)
   value = pair(1)
   task = int(pair(2))
end subroutine

subroutine broadcast(values, count, from)
   use mpi
   integer, intent(in) :: count, from
   double precision, intent(inout) :: values(count)
   integer :: code
   call MPI_Bcast(values, count, MPI_DOUBLE_PRECISION, from, MPI_COMM_WORLD, code)
end subroutine
