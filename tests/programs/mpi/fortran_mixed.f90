! A Fortran program with a part in C. Two processes.
program mixed
  use mpi
  implicit none
  interface
    integer function part_reads(comm, keyval, value)
      integer :: comm, keyval
      integer(kind=8) :: value
    end function
    integer function part_sees(status, source, tag)
      integer :: status(8), source, tag
    end function
    integer function part_ignores(status, statuses)
      integer :: status(8), statuses(8)
    end function
  end interface
  external :: part_sets, part_makes
  integer :: rank, key, ierr, type, status(MPI_STATUS_SIZE), sent(4), got(3)
  integer(kind=MPI_ADDRESS_KIND) :: value, found
  logical :: flag

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, key, 0_8, ierr)
  value = 12345678901_8
  call MPI_Comm_set_attr(MPI_COMM_WORLD, key, value, ierr)
  if (part_reads(MPI_COMM_WORLD, key, value) /= 0) error stop 'C does not read it'
  call part_sets(MPI_COMM_WORLD, key, value)
  call MPI_Comm_get_attr(MPI_COMM_WORLD, key, found, flag, ierr)
  if (.not. flag .or. found /= value) error stop 'Fortran does not read it'

  if (part_ignores(MPI_STATUS_IGNORE, MPI_STATUSES_IGNORE) /= 0) error stop 'C does not know what is ignored'

  call part_makes(type)
  sent = [1, 2, 3, 4]
  got = 0
  if (rank == 0) then
    call MPI_Send(sent, 1, type, 1, 6, MPI_COMM_WORLD, ierr)
    call MPI_Send(sent, 3, MPI_INTEGER, 1, 7, MPI_COMM_WORLD, ierr)
  else
    call MPI_Recv(got, 3, MPI_INTEGER, 0, 6, MPI_COMM_WORLD, status, ierr)
    if (any(got /= [1, 3, 0])) error stop 'another type'
    call MPI_Recv(got, 3, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
    if (part_sees(status, 0, 7) /= 0) error stop 'another status'
  end if
  call MPI_Type_free(type, ierr)
  call MPI_Finalize(ierr)
  if (rank == 0) print '(a)', 'all of it'
end program
