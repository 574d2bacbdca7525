! MPI with the module mpi_f08. Three processes.
module functions
  use mpi_f08
  implicit none
  integer :: copies = 0, told = 0
contains
  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    if (right) return
    write (0, '(2a)') 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine

  subroutine greatest(invec, inoutvec, len, datatype)
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    type(c_ptr), value :: invec, inoutvec
    integer :: len
    type(MPI_Datatype) :: datatype
    integer, pointer :: in(:), inout(:)
    call check(datatype == MPI_INTEGER, 'the type of operands')
    call c_f_pointer(invec, in, [len])
    call c_f_pointer(inoutvec, inout, [len])
    inout = max(in, inout)
  end subroutine

  subroutine copy(object, keyval, extra_state, attribute_val_in, attribute_val_out, flag, ierror)
    type(MPI_Comm) :: object
    integer :: keyval, ierror
    integer(kind=MPI_ADDRESS_KIND) :: extra_state, attribute_val_in, attribute_val_out
    logical :: flag
    call check(object == MPI_COMM_WORLD, 'whose attribute is copied')
    copies = copies + 1
    attribute_val_out = attribute_val_in + extra_state
    flag = .true.
    ierror = MPI_SUCCESS
  end subroutine

  subroutine hears(object, error_code)
    type(MPI_Comm) :: object
    integer :: error_code
    if (object == MPI_COMM_WORLD) told = error_code
  end subroutine
end module

program chapters
  use functions
  implicit none
  integer :: me, n

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, me)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  call check(n == 3, 'three processes')
  call messages()
  call requests()
  call collectives()
  call communicators()
  call types()
  call others()
  call MPI_Finalize()
  if (me == 0) print '(a)', 'all of it'

contains

  subroutine messages()
    type(MPI_Status) :: status
    type(MPI_Message) :: message
    integer :: got(3), count, old(MPI_STATUS_SIZE), ierr
    integer(kind=MPI_COUNT_KIND) :: large
    logical :: flag
    call MPI_Sendrecv([me, 1], 2, MPI_INTEGER, mod(me + 1, n), 3, got, 3, MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, &
      MPI_COMM_WORLD, status)
    call check(status%MPI_SOURCE == mod(me + 2, n) .and. status%MPI_TAG == 3, 'a status')
    call MPI_Get_count(status, MPI_INTEGER, count)
    call check(count == 2 .and. got(1) == mod(me + 2, n), 'a message')
    call MPI_Get_count(status, MPI_INTEGER, large)
    call check(large == 2, 'a large count')
    call MPI_Status_f082f(status, old)
    call check(old(MPI_SOURCE) == status%MPI_SOURCE, 'a status in the old form')
    ! Large counts: the compiler selects the specific procedure by the argument's type.
    large = 1
    call MPI_Sendrecv(me, large, MPI_INTEGER, me, 4, got, large, MPI_INTEGER, me, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
    call check(got(1) == me .and. ierr == MPI_SUCCESS, 'a message by a large count')
    call MPI_Send('text', 4, MPI_CHARACTER, me, 5, MPI_COMM_WORLD)
    call MPI_Improbe(me, 5, MPI_COMM_WORLD, flag, message, status)
    call check(flag .and. message /= MPI_MESSAGE_NULL, 'a matched message')
    call MPI_Mrecv(got, 4, MPI_CHARACTER, message, MPI_STATUS_IGNORE)
  end subroutine

  subroutine requests()
    type(MPI_Request) :: all(6)
    type(MPI_Status) :: statuses(6), status
    integer :: got(3), i, which
    logical :: flag
    do i = 1, 3
      call MPI_Irecv(got(i), 1, MPI_INTEGER, me, i, MPI_COMM_WORLD, all(i))
    end do
    do i = 1, 3
      call MPI_Isend(i, 1, MPI_INTEGER, me, i, MPI_COMM_WORLD, all(3 + i))
      call MPI_Wait(all(3 + i), MPI_STATUS_IGNORE)
    end do
    call MPI_Waitall(6, all, statuses)
    call check(all(1) == MPI_REQUEST_NULL .and. statuses(2)%MPI_TAG == 2, 'statuses')
    ! The compiler must assume that a variable changes while its request is pending.
    got = -1
    call MPI_Irecv(got, 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD, all(2))
    got = -2
    call MPI_Testany(3, all, which, flag, status)
    call check(.not. flag .and. which == MPI_UNDEFINED, 'nothing complete')
    call MPI_Send(me, 1, MPI_INTEGER, me, 1, MPI_COMM_WORLD)
    call MPI_Waitany(3, all, which, status)
    call check(which == 2 .and. got(1) == me, 'the place of a request')
    call MPI_Waitall(3, all, MPI_STATUSES_IGNORE)
  end subroutine

  subroutine collectives()
    type(MPI_Op) :: op
    type(MPI_Request) :: request
    integer :: value, all(3), counts(3), places(3)
    integer(kind=MPI_COUNT_KIND) :: large
    value = me
    call MPI_Op_create(greatest, .true., op)
    call MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_INTEGER, op, MPI_COMM_WORLD)
    call check(value == 2, 'an operator of the program')
    call MPI_Op_free(op)
    call check(op == MPI_OP_NULL, 'an operator that is gone')
    counts = 1
    places = [0, 1, 2]
    call MPI_Allgatherv(me, 1, MPI_INTEGER, all, counts, places, MPI_INTEGER, MPI_COMM_WORLD)
    call check(all(3) == 2, 'a collective')
    large = 1
    call MPI_Bcast(value, large, MPI_INTEGER, 1, MPI_COMM_WORLD)
    call MPI_Ibarrier(MPI_COMM_WORLD, request)
    call MPI_Wait(request, MPI_STATUS_IGNORE)
    call MPI_Barrier(MPI_COMM_WORLD)
  end subroutine

  subroutine communicators()
    type(MPI_Comm) :: half, other
    type(MPI_Group) :: group
    type(MPI_Errhandler) :: handler
    integer :: size, key, ierr, length
    integer(kind=MPI_ADDRESS_KIND) :: value
    character(len=MPI_MAX_OBJECT_NAME) :: name
    logical :: flag
    call MPI_Comm_split(MPI_COMM_WORLD, merge(MPI_UNDEFINED, 1, me == 2), me, half)
    if (me == 2) then
      call check(half == MPI_COMM_NULL, 'no communicator')
    else
      call MPI_Comm_size(half, size)
      call check(size == 2, 'a communicator')
      call MPI_Comm_free(half)
    end if
    call MPI_Comm_group(MPI_COMM_WORLD, group)
    call MPI_Group_range_incl(group, 1, reshape([0, 2, 2], [3, 1]), group)
    call MPI_Group_size(group, size)
    call check(size == 2, 'a group')
    call MPI_Comm_create_keyval(copy, MPI_COMM_NULL_DELETE_FN, key, 10_MPI_ADDRESS_KIND)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 32_MPI_ADDRESS_KIND)
    call MPI_Comm_dup(MPI_COMM_WORLD, other)
    call MPI_Comm_get_attr(other, key, value, flag)
    call check(flag .and. value == 42 .and. copies == 1, 'an attribute')
    call MPI_Comm_set_name(other, 'other')
    call MPI_Comm_get_name(other, name, length)
    call check(name == 'other' .and. length == 5, 'a name')
    call MPI_Comm_free(other)
    call MPI_Comm_create_errhandler(hears, handler)
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler)
    call MPI_Send(me, 1, MPI_DATATYPE_NULL, me, 0, MPI_COMM_WORLD, ierr)
    call check(ierr == MPI_ERR_TYPE .and. told == ierr, 'an error')
    call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL)
  end subroutine

  subroutine types()
    type(MPI_Datatype) :: type
    integer(kind=MPI_ADDRESS_KIND) :: lower, extent
    integer(kind=MPI_COUNT_KIND) :: counts(2), many
    integer :: size
    call MPI_Type_create_struct(2, [1, 1], [0_MPI_ADDRESS_KIND, 8_MPI_ADDRESS_KIND], [MPI_INTEGER, MPI_DOUBLE_PRECISION], type)
    call MPI_Type_commit(type)
    call MPI_Type_size(type, size)
    call MPI_Type_get_extent(type, lower, extent)
    call check(size == 12 .and. extent == 16, 'a type')
    call MPI_Type_size(type, many)
    call check(many == 12, 'a size as a large count')
    call MPI_Type_free(type)
    counts = 1
    call MPI_Type_create_struct(2_MPI_COUNT_KIND, counts, [0_MPI_COUNT_KIND, 4_MPI_COUNT_KIND], [MPI_INTEGER, MPI_INTEGER], type)
    call MPI_Type_get_extent_c(type, lower, extent)
    call check(extent == 8, 'a type by large counts')
    call MPI_Type_free(type)
    call check(type == MPI_DATATYPE_NULL, 'a type that is gone')
  end subroutine

  subroutine others()
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer, c_associated, c_loc
    type(MPI_Win) :: win
    type(MPI_Info) :: info
    type(c_ptr) :: base
    integer, pointer :: memory(:)
    integer(kind=1), target :: room(2000)
    integer :: size
    logical :: flag
    character(len=8) :: value
    double precision :: start
    start = MPI_Wtime()
    call MPI_Info_create(info)
    call MPI_Info_set(info, 'a', 'b')
    call MPI_Info_get(info, 'a', 8, value, flag)
    call check(flag .and. value == 'b', 'a value of a key')
    call MPI_Info_free(info)
    call check(info == MPI_INFO_NULL, 'no info')
    call MPI_Win_allocate(8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win)
    call c_f_pointer(base, memory, [2])
    memory = 0
    call MPI_Win_fence(0, win)
    call MPI_Put(me, 1, MPI_INTEGER, mod(me + 1, n), 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win)
    call MPI_Win_fence(0, win)
    call check(memory(1) == mod(me + 2, n), 'a window')
    call MPI_Win_free(win)
    call MPI_Buffer_attach(room, 2000)
    call MPI_Bsend(me, 1, MPI_INTEGER, MPI_PROC_NULL, 0, MPI_COMM_WORLD)
    call MPI_Buffer_detach(base, size)
    call check(c_associated(base, c_loc(room)) .and. size == 2000, 'a buffer')
    call MPI_Sizeof(start, size)
    call check(size == 8 .and. MPI_Wtime() >= start, 'sizes and times')
    call MPI_F_sync_reg(room)
    call PMPI_Barrier(MPI_COMM_WORLD)
  end subroutine
end program
