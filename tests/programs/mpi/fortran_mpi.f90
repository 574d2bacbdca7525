! MPI with the module mpi. Three processes; the argument is a folder for files.
module functions
  use mpi
  implicit none
  integer :: copies = 0, deletes = 0, freed = 0, told(2) = 0
contains
  subroutine check(right, what)
    logical, intent(in) :: right
    character(len=*), intent(in) :: what
    integer :: ierr
    if (right) return
    write (0, '(2a)') 'wrong: ', what
    call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
  end subroutine

  subroutine copy(object, key, extra, from, to, flag, ierr)
    integer :: object, key, ierr
    integer(kind=MPI_ADDRESS_KIND) :: extra, from, to
    logical :: flag
    copies = copies + 1
    to = from + extra
    flag = .true.
    ierr = MPI_SUCCESS
  end subroutine

  subroutine delete(object, key, value, extra, ierr)
    integer :: object, key, ierr
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    deletes = deletes + 1
    ierr = MPI_SUCCESS
  end subroutine

  subroutine query(extra, status, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: status(MPI_STATUS_SIZE), ierr
    status(MPI_SOURCE) = int(extra)
    status(MPI_TAG) = 9
    call MPI_Status_set_cancelled(status, .false., ierr)
    call MPI_Status_set_elements(status, MPI_INTEGER, 5, ierr)
  end subroutine

  subroutine release(extra, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    integer :: ierr
    freed = int(extra)
    extra = extra + 1
    ierr = MPI_SUCCESS
  end subroutine

  subroutine cancel(extra, complete, ierr)
    integer(kind=MPI_ADDRESS_KIND) :: extra
    logical :: complete
    integer :: ierr
    ierr = MPI_SUCCESS
  end subroutine

  subroutine hears(file, code)
    integer :: file, code
    told = [file, code]
  end subroutine
end module

program chapters
  use functions
  implicit none
  integer :: me, n, ierr, parent

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, me, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, n, ierr)
  call MPI_Comm_get_parent(parent, ierr)
  if (parent /= MPI_COMM_NULL) then
    call started(parent)
    call MPI_Finalize(ierr)
    stop
  end if
  call check(n == 3, 'three processes')
  call types()
  call exchanges()
  call grids()
  call attributes()
  call windows()
  call files()
  call requests()
  call processes()
  call facts()
  call MPI_Finalize(ierr)
  if (me == 0) print '(a)', 'all of it'

contains

  ! Datatypes of array sections and of records.
  subroutine types()
    type record
      sequence
      double precision :: x
      integer :: k(2)
    end type
    type(record) :: sent(2), got(2)
    integer :: one, many, size, status(MPI_STATUS_SIZE), part, count
    integer :: whole(4, 4), integers(3), combiner, some(3), old(1)
    integer(kind=MPI_ADDRESS_KIND) :: places(2), lower, extent, addresses(1)
    call MPI_Get_address(sent(1)%x, places(1), ierr)
    call MPI_Get_address(sent(1)%k, places(2), ierr)
    places = [0_MPI_ADDRESS_KIND, MPI_Aint_diff(places(2), places(1))]
    call MPI_Type_create_struct(2, [1, 2], places, [MPI_DOUBLE_PRECISION, MPI_INTEGER], one, ierr)
    extent = storage_size(sent(1)) / 8
    call MPI_Type_create_resized(one, 0_MPI_ADDRESS_KIND, extent, many, ierr)
    call MPI_Type_commit(many, ierr)
    call MPI_Type_get_extent(many, lower, extent, ierr)
    call check(lower == 0 .and. extent == 16, 'the bounds of a record')
    sent = record(me + 0.25d0, [me, 7])
    call MPI_Sendrecv(sent, 2, many, mod(me + 1, n), 1, got, 2, many, mod(me + 2, n), 1, MPI_COMM_WORLD, status, ierr)
    call check(got(2)%x == mod(me + 2, n) + 0.25d0 .and. got(2)%k(2) == 7, 'records')
    call MPI_Get_count(status, many, count, ierr)
    call check(count == 2, 'the number of records')
    call MPI_Type_free(one, ierr)
    call MPI_Type_free(many, ierr)

    whole = 0
    if (me == 0) whole = reshape([(count, count = 1, 16)], [4, 4])
    call MPI_Type_create_subarray(2, [4, 4], [2, 3], [1, 0], MPI_ORDER_FORTRAN, MPI_INTEGER, part, ierr)
    call MPI_Type_commit(part, ierr)
    call MPI_Bcast(whole, 1, part, 0, MPI_COMM_WORLD, ierr)
    call check(whole(2, 1) == 2 .and. whole(3, 3) == 11, 'a part of an array')
    if (me /= 0) call check(whole(1, 1) == 0 .and. whole(2, 4) == 0, 'nothing but the part')
    call MPI_Type_free(part, ierr)
    call MPI_Type_vector(3, 1, 2, MPI_INTEGER, part, ierr)
    call MPI_Type_get_envelope(part, integers(1), integers(2), integers(3), combiner, ierr)
    call check(combiner == MPI_COMBINER_VECTOR .and. integers(1) == 3, 'how a type was made')
    call MPI_Type_get_contents(part, 3, 0, 1, some, addresses, old, ierr)
    call check(all(some == [3, 1, 2]) .and. old(1) == MPI_INTEGER, 'of what a type was made')
    call MPI_Type_free(part, ierr)
    call MPI_Type_create_f90_real(15, 307, part, ierr)
    call MPI_Type_size(part, size, ierr)
    call check(size == 8, 'a type by its precision')
    call MPI_Sizeof(places, size, ierr)
    call check(size == 8, 'the size of a variable')
  end subroutine

  ! Parts with different datatypes, between all processes.
  subroutine exchanges()
    integer :: sent(3), got(3), kinds(3), counts(3), places(3), i, position
    character(len=24) :: room
    double precision :: x
    sent = [10 * me, 10 * me + 1, 10 * me + 2]
    kinds = MPI_INTEGER
    counts = 1
    places = [0, 4, 8]
    call MPI_Alltoallw(sent, counts, places, kinds, got, counts, places, kinds, MPI_COMM_WORLD, ierr)
    call check(all(got == [me, 10 + me, 20 + me]), 'an exchange with types')
    got = [(100 * me + i, i = 0, 2)]
    call MPI_Alltoall(MPI_IN_PLACE, 1, MPI_INTEGER, got, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call check(all(got == [me, 100 + me, 200 + me]), 'an exchange in place')
    position = 0
    call MPI_Pack(sent, 3, MPI_INTEGER, room, 24, position, MPI_COMM_WORLD, ierr)
    call MPI_Pack(1.5d0, 1, MPI_DOUBLE_PRECISION, room, 24, position, MPI_COMM_WORLD, ierr)
    call check(position == 20, 'packing')
    position = 0
    call MPI_Unpack(room, 24, position, got, 3, MPI_INTEGER, MPI_COMM_WORLD, ierr)
    call MPI_Unpack(room, 24, position, x, 1, MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierr)
    call check(all(got == sent) .and. x == 1.5d0, 'unpacking')
  end subroutine

  ! Grids and neighbourhood collectives.
  subroutine grids()
    integer :: grid, line, dims(2), place(2), rank, from, to, graph, count(2), weights(2), ones(2), kinds(2), got(2)
    logical :: periods(2), weighted
    integer(kind=MPI_ADDRESS_KIND) :: places(2)
    dims = 0
    call MPI_Dims_create(n, 2, dims, ierr)
    call check(product(dims) == 3, 'the sides of a grid')
    call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .false.], .false., grid, ierr)
    periods = .false.
    call MPI_Cart_get(grid, 2, dims, periods, place, ierr)
    call check(periods(1) .eqv. .true., 'a period')
    call check(periods(2) .eqv. .false., 'no period')
    call MPI_Cart_rank(grid, place, rank, ierr)
    call check(rank == me, 'the rank of a place')
    call MPI_Cart_shift(grid, 0, 1, from, to, ierr)
    call check(to == mod(me + 1, n) .and. from == mod(me + 2, n), 'neighbours')
    call MPI_Cart_shift(grid, 1, 1, from, to, ierr)
    call check(to == MPI_PROC_NULL, 'no neighbours')
    call MPI_Cart_sub(grid, [.false., .true.], line, ierr)
    call MPI_Comm_size(line, rank, ierr)
    call check(rank == 1, 'a line of a grid')
    call MPI_Comm_free(line, ierr)
    call MPI_Comm_free(grid, ierr)
    call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 1, [mod(me + 2, n)], MPI_UNWEIGHTED, 1, [mod(me + 1, n)], &
      MPI_UNWEIGHTED, MPI_INFO_NULL, .false., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, count(1), count(2), weighted, ierr)
    call check(all(count == 1) .and. .not. weighted, 'a graph')
    got = -1
    ones = 1
    places = 0
    kinds = MPI_INTEGER
    call MPI_Neighbor_alltoallw([me], ones, places, kinds, got, ones, places, kinds, graph, ierr)
    call check(got(1) == mod(me + 2, n), 'an exchange with neighbours')
    call MPI_Comm_free(graph, ierr)
    weights = 3
    call MPI_Dist_graph_create(MPI_COMM_WORLD, 1, [me], [1], [mod(me + 1, n)], weights, MPI_INFO_NULL, .true., graph, ierr)
    call MPI_Dist_graph_neighbors_count(graph, count(1), count(2), weighted, ierr)
    call check(all(count == 1) .and. weighted, 'a graph with weights')
    call MPI_Comm_free(graph, ierr)
  end subroutine

  ! Attributes whose values are as long as addresses.
  subroutine attributes()
    integer :: key, comm, type
    integer(kind=MPI_ADDRESS_KIND) :: value, extra
    logical :: flag
    extra = 2_8 ** 40
    call MPI_Comm_create_keyval(copy, delete, key, extra, ierr)
    call MPI_Comm_set_attr(MPI_COMM_WORLD, key, 5_MPI_ADDRESS_KIND, ierr)
    call MPI_Comm_dup(MPI_COMM_WORLD, comm, ierr)
    call MPI_Comm_get_attr(comm, key, value, flag, ierr)
    call check(flag .and. value == 5 + extra .and. copies == 1, 'an attribute that was copied')
    call MPI_Comm_set_attr(comm, key, 6_MPI_ADDRESS_KIND, ierr)
    call check(deletes == 1, 'an attribute that was replaced')
    call MPI_Comm_free(comm, ierr)
    call check(deletes == 2, 'an attribute that went with its communicator')
    call MPI_Comm_delete_attr(MPI_COMM_WORLD, key, ierr)
    call MPI_Comm_get_attr(MPI_COMM_WORLD, key, value, flag, ierr)
    call check(.not. flag .and. deletes == 3, 'no attribute')
    call MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
    call check(flag .and. value == 2147483647, 'the largest tag')
    call MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, key, extra, ierr)
    call MPI_Type_set_attr(MPI_INTEGER, key, -1_MPI_ADDRESS_KIND, ierr)
    call MPI_Type_dup(MPI_INTEGER, type, ierr)
    call MPI_Type_get_attr(type, key, value, flag, ierr)
    call check(flag .and. value == -1, 'an attribute of a type')
    call MPI_Type_free(type, ierr)
  end subroutine

  ! Windows: memory that other processes access.
  subroutine windows()
    use, intrinsic :: iso_c_binding, only: c_ptr, c_f_pointer
    integer :: win, memory(4), got, unit
    integer(kind=MPI_ADDRESS_KIND) :: size, value, where
    logical :: flag
    type(c_ptr) :: base
    integer, pointer :: shared(:)
    memory = 0
    call MPI_Win_create(memory, 16_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, win, ierr)
    call MPI_Win_get_attr(win, MPI_WIN_SIZE, value, flag, ierr)
    call check(flag .and. value == 16, 'the size of a window')
    call MPI_Win_get_attr(win, MPI_WIN_BASE, value, flag, ierr)
    call MPI_Get_address(memory, where, ierr)
    call check(flag .and. value == where, 'the address of a window')
    call MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, value, flag, ierr)
    call check(flag .and. value == 4, 'the unit of a window')
    call MPI_Win_fence(0, win, ierr)
    call MPI_Put(me, 1, MPI_INTEGER, mod(me + 1, n), 2_MPI_ADDRESS_KIND, 1, MPI_INTEGER, win, ierr)
    call MPI_Accumulate([1], 1, MPI_INTEGER, 0, 0_MPI_ADDRESS_KIND, 1, MPI_INTEGER, MPI_SUM, win, ierr)
    call MPI_Win_fence(0, win, ierr)
    call check(memory(3) == mod(me + 2, n), 'what was put')
    if (me == 0) call check(memory(1) == 3, 'what was accumulated')
    call MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win, ierr)
    call MPI_Fetch_and_op(1, got, MPI_INTEGER, 0, 3_MPI_ADDRESS_KIND, MPI_SUM, win, ierr)
    call MPI_Win_unlock(0, win, ierr)
    call check(got >= 0 .and. got < 3, 'what was fetched')
    call MPI_Win_free(win, ierr)
    call check(win == MPI_WIN_NULL, 'a window that is gone')
    call MPI_Win_allocate_shared(8_MPI_ADDRESS_KIND, 4, MPI_INFO_NULL, MPI_COMM_WORLD, base, win, ierr)
    call MPI_Win_shared_query(win, 0, size, unit, base, ierr)
    call check(size == 8 .and. unit == 4, 'shared memory')
    call c_f_pointer(base, shared, [2])
    call MPI_Win_fence(0, win, ierr)
    if (me == 1) shared(2) = 77
    call MPI_Win_fence(0, win, ierr)
    call check(shared(2) == 77, 'what another one has written')
    call MPI_Win_free(win, ierr)
    call MPI_Alloc_mem(64_MPI_ADDRESS_KIND, MPI_INFO_NULL, base, ierr)
    call c_f_pointer(base, shared, [16])
    shared = 3
    call MPI_Free_mem(shared, ierr)
    call check(ierr == MPI_SUCCESS, 'memory that is given back')
  end subroutine

  ! Files.
  subroutine files()
    integer :: file, status(MPI_STATUS_SIZE), count, got(2), handler, mode, kind, view
    integer(kind=MPI_OFFSET_KIND) :: size, where
    character(len=200) :: folder, representation
    logical :: atomic
    call get_command_argument(1, folder)
    call MPI_File_open(MPI_COMM_WORLD, trim(folder) // '/data', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, ierr)
    call check(ierr == MPI_SUCCESS, 'opening a file')
    call MPI_File_write_at_all(file, 8_MPI_OFFSET_KIND * me, [me, -me], 2, MPI_INTEGER, status, ierr)
    call MPI_Get_count(status, MPI_INTEGER, count, ierr)
    call check(count == 2, 'writing')
    call MPI_File_sync(file, ierr)
    call MPI_Barrier(MPI_COMM_WORLD, ierr)
    call MPI_File_get_size(file, size, ierr)
    call check(size == 24, 'the size of a file')
    call MPI_File_set_view(file, 4_MPI_OFFSET_KIND, MPI_INTEGER, MPI_INTEGER, 'native  ', MPI_INFO_NULL, ierr)
    call MPI_File_get_view(file, where, kind, view, representation, ierr)
    call check(where == 4 .and. kind == MPI_INTEGER .and. representation == 'native', 'a view')
    call MPI_File_read_at(file, 1_MPI_OFFSET_KIND, got, 2, MPI_INTEGER, MPI_STATUS_IGNORE, ierr)
    call check(all(got == [1, -1]), 'reading')
    call MPI_File_get_amode(file, mode, ierr)
    call check(iand(mode, MPI_MODE_RDWR) /= 0, 'the mode of a file')
    call MPI_File_set_atomicity(file, .true., ierr)
    call MPI_File_get_atomicity(file, atomic, ierr)
    call check(atomic .eqv. .true., 'an atomic file')
    call MPI_File_create_errhandler(hears, handler, ierr)
    call MPI_File_set_errhandler(file, handler, ierr)
    call MPI_File_read_at(file, -5_MPI_OFFSET_KIND, got, 2, MPI_INTEGER, status, ierr)
    call check(told(1) == file .and. told(2) == ierr .and. ierr /= MPI_SUCCESS, 'an error that is heard')
    call MPI_File_close(file, ierr)
    call check(file == MPI_FILE_NULL, 'a file that is closed')
    call MPI_File_open(MPI_COMM_SELF, trim(folder) // '/none', MPI_MODE_RDONLY, MPI_INFO_NULL, file, ierr)
    call check(ierr == MPI_ERR_NO_SUCH_FILE, 'a file that is not there')
  end subroutine

  ! Generalized requests, matched messages, and requests of collectives.
  subroutine requests()
    integer :: request, status(MPI_STATUS_SIZE), count, message, got, indices(2), pair(2)
    ! Changed by the callbacks.
    integer(kind=MPI_ADDRESS_KIND), volatile :: extra
    logical :: flag
    extra = 41
    call MPI_Grequest_start(query, release, cancel, extra, request, ierr)
    call MPI_Test(request, flag, status, ierr)
    call check(.not. flag, 'a request that is not complete')
    call MPI_Grequest_complete(request, ierr)
    call MPI_Wait(request, status, ierr)
    call MPI_Get_count(status, MPI_INTEGER, count, ierr)
    call check(count == 5 .and. status(MPI_TAG) == 9 .and. status(MPI_SOURCE) == 41 .and. freed == 41, 'a request of the program')
    call check(extra == 42, 'the variable of a request is the own one of the program')
    call MPI_Isend(me, 1, MPI_INTEGER, me, 4, MPI_COMM_WORLD, request, ierr)
    call MPI_Mprobe(me, 4, MPI_COMM_WORLD, message, status, ierr)
    call MPI_Mrecv(got, 1, MPI_INTEGER, message, MPI_STATUS_IGNORE, ierr)
    call check(got == me .and. message == MPI_MESSAGE_NULL, 'a matched message')
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierr)
    pair = MPI_REQUEST_NULL
    call MPI_Iallreduce(MPI_IN_PLACE, got, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, pair(2), ierr)
    flag = .false.
    do while (.not. flag)
      call MPI_Testany(2, pair, count, flag, status, ierr)
    end do
    call check(count == 2 .and. got == 3, 'a collective with a request')
    call MPI_Testsome(2, pair, count, indices, MPI_STATUSES_IGNORE, ierr)
    call check(count == MPI_UNDEFINED, 'no requests')
  end subroutine

  ! Processes that are spawned, with arguments or without.
  subroutine processes()
    integer :: children, codes(3), sum
    character(len=400) :: own
    character(len=400) :: programs(2)
    character(len=8) :: table(2, 3)
    call get_command_argument(0, own)
    sum = -1
    ! Leading blanks do not belong to a program's name or an argument.
    own = ' ' // own
    call MPI_Comm_spawn(own, [' one word', 'two      ', '         '], 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, children, codes, ierr)
    call check(ierr == MPI_SUCCESS .and. all(codes(:2) == MPI_SUCCESS), 'starting processes')
    call MPI_Allreduce(0, sum, 1, MPI_INTEGER, MPI_SUM, children, ierr)
    call check(sum == 4, 'arguments of processes')
    call MPI_Comm_disconnect(children, ierr)
    call check(children == MPI_COMM_NULL, 'processes that go their way')
    programs = own
    table(1, :) = ['x       ', '        ', '        ']
    table(2, :) = ['  y     ', 'z       ', '        ']
    call MPI_Comm_spawn_multiple(2, programs, table, [1, 2], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_WORLD, children, &
      codes, ierr)
    call MPI_Allreduce(0, sum, 1, MPI_INTEGER, MPI_SUM, children, ierr)
    call check(sum == 5, 'arguments of several programs')
    call MPI_Comm_disconnect(children, ierr)
    call MPI_Comm_spawn(own, MPI_ARGV_NULL, 1, MPI_INFO_NULL, 1, MPI_COMM_WORLD, children, MPI_ERRCODES_IGNORE, ierr)
    call MPI_Allreduce(0, sum, 1, MPI_INTEGER, MPI_SUM, children, ierr)
    call check(sum == 0, 'no arguments')
    call MPI_Comm_disconnect(children, ierr)
    call MPI_Comm_spawn_multiple(2, programs, MPI_ARGVS_NULL, [1, 1], [MPI_INFO_NULL, MPI_INFO_NULL], 0, MPI_COMM_WORLD, &
      children, MPI_ERRCODES_IGNORE, ierr)
    call MPI_Allreduce(0, sum, 1, MPI_INTEGER, MPI_SUM, children, ierr)
    call check(sum == 0, 'no arguments of several programs')
    call MPI_Comm_disconnect(children, ierr)
  end subroutine

  ! A spawned process sends its number of arguments.
  subroutine started(parent)
    integer, intent(in) :: parent
    integer :: sum, starters
    character(len=20) :: first
    starters = parent
    call get_command_argument(1, first)
    if (command_argument_count() == 2) call check(first == 'one word' .or. first == 'y', 'an argument')
    call MPI_Allreduce(command_argument_count(), sum, 1, MPI_INTEGER, MPI_SUM, starters, ierr)
    call MPI_Comm_disconnect(starters, ierr)
  end subroutine

  ! Queries about the library and about Fortran's types.
  subroutine facts()
    integer :: info, major, minor, length
    character(len=8) :: value
    character(len=MPI_MAX_LIBRARY_VERSION_STRING) :: version
    logical :: flag
    call MPI_Get_version(major, minor, ierr)
    call check(major == MPI_VERSION .and. minor == MPI_SUBVERSION, 'the version')
    call MPI_Get_library_version(version, length, ierr)
    call check(index(version, 'Regatta') == 1 .and. len_trim(version) == length, 'the name of the library')
    call MPI_Abi_get_fortran_info(info, ierr)
    call MPI_Info_get(info, 'mpi_integer_size', 8, value, flag, ierr)
    call check(flag .and. value == '4', 'the size of an INTEGER')
    call MPI_Info_get(info, 'mpi_double_precision_size', 8, value, flag, ierr)
    call check(flag .and. value == '8', 'the size of DOUBLE PRECISION')
    call MPI_Info_free(info, ierr)
    call MPI_Is_thread_main(flag, ierr)
    call check(flag, 'the main thread')
    call MPI_Pcontrol(1)
  end subroutine
end program
