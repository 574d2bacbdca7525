c     MPI with mpif.h, in fixed form, including functions of MPI-1. Three processes.
      program old
      implicit none
      include 'mpif.h'
      integer ierr, me, n, level
      logical ended
      character*8 word
      call MPI_INIT_THREAD(MPI_THREAD_SINGLE, level, ierr)
      call check(ierr .eq. MPI_SUCCESS, 1)
      call MPI_COMM_RANK(MPI_COMM_WORLD, me, ierr)
      call MPI_COMM_SIZE(MPI_COMM_WORLD, n, ierr)
      call getarg(1, word)
      if (word .eq. 'wrong') then
         call MPI_SEND(me, 1, MPI_INTEGER, 77, 0, MPI_COMM_WORLD, ierr)
      end if
      call check(n .eq. 3, 2)
      call messag(me, n)
      call reques(me, n)
      call collec(me, n)
      call reduce(me, n)
      call layout(me, n)
      call values(me, n)
      call texts(me)
      call errors(me)
      call MPI_FINALIZED(ended, ierr)
      call check(.not. ended, 3)
      call MPI_FINALIZE(ierr)
      if (me .eq. 0) print '(a)', 'all of it'
      end

      subroutine check(right, number)
      implicit none
      include 'mpif.h'
      logical right
      integer number, ierr
      if (right) return
      write (0, *) 'check', number, 'is wrong'
      call MPI_ABORT(MPI_COMM_WORLD, 1, ierr)
      stop
      end

c     Messages and their statuses.
      subroutine messag(me, n)
      implicit none
      include 'mpif.h'
      integer me, n, next, before, ierr, count, i
      integer status(MPI_STATUS_SIZE), got(4), sent(4)
      logical flag
      next = mod(me + 1, n)
      before = mod(me + n - 1, n)
      do 10 i = 1, 4
 10      sent(i) = 10 * me + i
      call MPI_SENDRECV(sent, 3, MPI_INTEGER, next, 5, got, 4,
     &  MPI_INTEGER, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
     &  status, ierr)
      call check(status(MPI_SOURCE) .eq. before, 10)
      call check(status(MPI_TAG) .eq. 5, 11)
      call MPI_GET_COUNT(status, MPI_INTEGER, count, ierr)
      call check(count .eq. 3 .and. got(3) .eq. 10 * before + 3, 12)
      call MPI_SENDRECV_REPLACE(sent, 4, MPI_INTEGER, next, 6, before,
     &  6, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierr)
      call check(sent(4) .eq. 10 * before + 4, 13)
      call MPI_SEND(me, 1, MPI_INTEGER, next, 7, MPI_COMM_WORLD, ierr)
      flag = .false.
 20   call MPI_IPROBE(before, 7, MPI_COMM_WORLD, flag, status, ierr)
      if (.not. flag) goto 20
      call check(flag .eqv. .true., 14)
      call MPI_PROBE(before, 7, MPI_COMM_WORLD, status, ierr)
      call MPI_RECV(i, 1, MPI_INTEGER, before, 7, MPI_COMM_WORLD,
     &  MPI_STATUS_IGNORE, ierr)
      call check(i .eq. before, 15)
      call MPI_IPROBE(before, 8, MPI_COMM_WORLD, flag, status, ierr)
      call check(.not. flag, 16)
      call MPI_SEND(me, 1, MPI_INTEGER, MPI_PROC_NULL, 7,
     &  MPI_COMM_WORLD, ierr)
      call check(ierr .eq. MPI_SUCCESS, 17)
      end

c     Requests: all, any, some; ignored statuses; persistent requests.
      subroutine reques(me, n)
      implicit none
      include 'mpif.h'
      integer me, n, ierr, i, which, count, places(3)
      integer all(200), got(100), sent(100), stats(MPI_STATUS_SIZE,200)
      integer status(MPI_STATUS_SIZE)
      logical flag
c     In a common block, because compilers assume that a local variable's address is not known elsewhere.
      common /rcvd/ got
      do 10 i = 1, 100
         sent(i) = i
         call MPI_IRECV(got(i), 1, MPI_INTEGER, me, i, MPI_COMM_WORLD,
     &     all(i), ierr)
 10   continue
      do 20 i = 1, 100
         call MPI_ISEND(sent(i), 1, MPI_INTEGER, me, i, MPI_COMM_WORLD,
     &     all(100 + i), ierr)
 20   continue
      call MPI_WAITALL(200, all, stats, ierr)
      do 30 i = 1, 100
         call check(stats(MPI_TAG, i) .eq. i .and. got(i) .eq. i, 20)
         call check(all(i) .eq. MPI_REQUEST_NULL, 21)
 30   continue
      call MPI_IRECV(got, 1, MPI_INTEGER, me, 3, MPI_COMM_WORLD,
     &  all(1), ierr)
      all(2) = MPI_REQUEST_NULL
      call MPI_IRECV(got(2), 1, MPI_INTEGER, me, 4, MPI_COMM_WORLD,
     &  all(3), ierr)
      call MPI_TESTANY(3, all, which, flag, status, ierr)
      call check(.not. flag .and. which .eq. MPI_UNDEFINED, 22)
      call MPI_SEND(me, 1, MPI_INTEGER, me, 4, MPI_COMM_WORLD, ierr)
      call MPI_WAITANY(3, all, which, status, ierr)
      call check(which .eq. 3 .and. status(MPI_TAG) .eq. 4, 23)
      call MPI_SEND(me, 1, MPI_INTEGER, me, 3, MPI_COMM_WORLD, ierr)
      call MPI_WAITSOME(3, all, count, places, MPI_STATUSES_IGNORE,
     &  ierr)
      call check(count .eq. 1 .and. places(1) .eq. 1, 24)
      call MPI_WAITSOME(3, all, count, places, stats, ierr)
      call check(count .eq. MPI_UNDEFINED, 25)
      call MPI_RECV_INIT(got, 1, MPI_INTEGER, me, 9, MPI_COMM_WORLD,
     &  all(1), ierr)
      call MPI_SEND_INIT(me, 1, MPI_INTEGER, me, 9, MPI_COMM_WORLD,
     &  all(2), ierr)
      do 40 i = 1, 3
         got(1) = -1
         call MPI_STARTALL(2, all, ierr)
         call MPI_WAITALL(2, all, MPI_STATUSES_IGNORE, ierr)
         call check(got(1) .eq. me, 26)
 40   continue
      call MPI_REQUEST_FREE(all(1), ierr)
      call MPI_REQUEST_FREE(all(2), ierr)
      call check(all(1) .eq. MPI_REQUEST_NULL, 27)
      call MPI_IRECV(got, 1, MPI_INTEGER, me, 9, MPI_COMM_WORLD,
     &  all(1), ierr)
      call MPI_CANCEL(all(1), ierr)
      call MPI_WAIT(all(1), status, ierr)
      call MPI_TEST_CANCELLED(status, flag, ierr)
      call check(flag, 28)
      end

c     Collectives. MPI_BARRIER is defined by the program.
      subroutine collec(me, n)
      implicit none
      include 'mpif.h'
      integer me, n, ierr, i, calls
      integer counts(3), places(3), parts(6), own(3)
      double precision x, y(3)
      common /barrs/ calls
      calls = 0
      call MPI_BARRIER(MPI_COMM_WORLD, ierr)
      call check(calls .eq. 1, 30)
      x = me + 0.5d0
      call MPI_ALLGATHER(x, 1, MPI_DOUBLE_PRECISION, y, 1,
     &  MPI_DOUBLE_PRECISION, MPI_COMM_WORLD, ierr)
      call check(y(3) .eq. 2.5d0, 31)
      do 10 i = 1, 3
         counts(i) = i
         places(i) = (i * (i - 1)) / 2
         own(i) = 10 * me + i
 10   continue
      call MPI_GATHERV(own, me + 1, MPI_INTEGER, parts, counts, places,
     &  MPI_INTEGER, 1, MPI_COMM_WORLD, ierr)
      if (me .eq. 1) then
         call check(parts(1) .eq. 1 .and. parts(3) .eq. 12, 32)
         call check(parts(6) .eq. 23, 33)
      end if
      x = -1
      if (me .eq. 2) x = 7
      call MPI_BCAST(x, 1, MPI_REAL8, 2, MPI_COMM_WORLD, ierr)
      call check(x .eq. 7, 34)
      own(1) = me
      call MPI_ALLREDUCE(MPI_IN_PLACE, own, 1, MPI_INTEGER, MPI_MAX,
     &  MPI_COMM_WORLD, ierr)
      call check(own(1) .eq. 2, 35)
      end

      subroutine MPI_BARRIER(comm, ierr)
      implicit none
      integer comm, ierr, calls
      common /barrs/ calls
      calls = calls + 1
      call PMPI_BARRIER(comm, ierr)
      end

c     Reductions of Fortran types, and with a function of the program.
      subroutine reduce(me, n)
      implicit none
      include 'mpif.h'
      integer me, n, ierr, op, pair(2), best(2), size, i
      logical mine, all, any
      complex z, zsum
      double complex w, wprod
      real two(2), least(2)
      integer*8 wide, wsum
      logical yes
      external halve
      mine = me .eq. 1
      call MPI_ALLREDUCE(mine, all, 1, MPI_LOGICAL, MPI_LAND,
     &  MPI_COMM_WORLD, ierr)
      call MPI_ALLREDUCE(mine, any, 1, MPI_LOGICAL, MPI_LOR,
     &  MPI_COMM_WORLD, ierr)
      call check((.not. all) .and. any, 40)
      call check(any .eqv. .true., 41)
      z = cmplx(1.0, me)
      call MPI_ALLREDUCE(z, zsum, 1, MPI_COMPLEX, MPI_SUM,
     &  MPI_COMM_WORLD, ierr)
      call check(zsum .eq. (3.0, 3.0), 42)
      w = (0d0, 1d0)
      call MPI_ALLREDUCE(w, wprod, 1, MPI_DOUBLE_COMPLEX, MPI_PROD,
     &  MPI_COMM_WORLD, ierr)
      call check(wprod .eq. (0d0, -1d0), 43)
      pair(1) = mod(me + 1, n)
      pair(2) = me
      call MPI_ALLREDUCE(pair, best, 1, MPI_2INTEGER, MPI_MAXLOC,
     &  MPI_COMM_WORLD, ierr)
      call check(best(1) .eq. 2 .and. best(2) .eq. 1, 44)
      two(1) = 3 - me
      two(2) = me
      call MPI_ALLREDUCE(two, least, 1, MPI_2REAL, MPI_MINLOC,
     &  MPI_COMM_WORLD, ierr)
      call check(least(1) .eq. 1.0 .and. least(2) .eq. 2.0, 45)
      wide = 3000000000_8
      call MPI_ALLREDUCE(wide, wsum, 1, MPI_INTEGER8, MPI_SUM,
     &  MPI_COMM_WORLD, ierr)
      call check(wsum .eq. 9000000000_8, 46)
      call MPI_OP_CREATE(halve, .true., op, ierr)
      call MPI_OP_COMMUTATIVE(op, yes, ierr)
      call check(yes, 47)
      do 10 i = 1, 2
         pair(i) = 2 * me + i
 10   continue
      call MPI_ALLREDUCE(pair, best, 2, MPI_INTEGER, op,
     &  MPI_COMM_WORLD, ierr)
      call check(best(1) .eq. 9 .and. best(2) .eq. 12, 48)
      call MPI_OP_FREE(op, ierr)
      call check(op .eq. MPI_OP_NULL, 49)
      call MPI_TYPE_SIZE(MPI_2DOUBLE_PRECISION, size, ierr)
      call check(size .eq. 16, 50)
      end

      subroutine halve(in, inout, len, type)
      implicit none
      include 'mpif.h'
      integer len, type, i, in(len), inout(len)
      call check(type .eq. MPI_INTEGER, 51)
      do 10 i = 1, len
         inout(i) = inout(i) + in(i)
 10   continue
      end

c     Derived types, also with functions of MPI-1.
      subroutine layout(me, n)
      implicit none
      include 'mpif.h'
      integer me, n, ierr, types(2), lens(2), where(2), type, ext, i
      integer status(MPI_STATUS_SIZE)
      double precision x(4), y(4)
      integer k(4), l(4)
      integer*8 base, place(2)
      common /data/ x, k, y, l
      do 10 i = 1, 4
         x(i) = i + 10 * me
         k(i) = i + 100 * me
         y(i) = 0
         l(i) = 0
 10   continue
      call MPI_ADDRESS(x, where(1), ierr)
      call MPI_ADDRESS(k, where(2), ierr)
      where(2) = where(2) - where(1)
      where(1) = 0
      types(1) = MPI_DOUBLE_PRECISION
      types(2) = MPI_INTEGER
      lens(1) = 4
      lens(2) = 4
      call MPI_TYPE_STRUCT(2, lens, where, types, type, ierr)
      call MPI_TYPE_COMMIT(type, ierr)
      call MPI_TYPE_EXTENT(type, ext, ierr)
      call check(ext .eq. 48, 60)
      call MPI_SENDRECV(x, 1, type, mod(me + 1, n), 1, y, 1, type,
     &  mod(me + 2, n), 1, MPI_COMM_WORLD, status, ierr)
      call check(y(4) .eq. 4 + 10 * mod(me + 2, n), 61)
      call check(l(4) .eq. 4 + 100 * mod(me + 2, n), 62)
      call MPI_TYPE_FREE(type, ierr)
      call check(type .eq. MPI_DATATYPE_NULL, 63)
c     Absolute addresses, relative to MPI_BOTTOM.
      call MPI_GET_ADDRESS(x, place(1), ierr)
      call MPI_GET_ADDRESS(k, place(2), ierr)
      call MPI_TYPE_CREATE_STRUCT(2, lens, place, types, type, ierr)
      call MPI_TYPE_COMMIT(type, ierr)
      if (me .eq. 0) then
         call MPI_SEND(MPI_BOTTOM, 1, type, 1, 2, MPI_COMM_WORLD, ierr)
      else if (me .eq. 1) then
         call MPI_RECV(MPI_BOTTOM, 1, type, 0, 2, MPI_COMM_WORLD,
     &     status, ierr)
         call check(x(2) .eq. 2 .and. k(4) .eq. 4, 64)
      end if
      call MPI_TYPE_FREE(type, ierr)
      call MPI_TYPE_HVECTOR(2, 1, 16, MPI_DOUBLE_PRECISION, type, ierr)
      call MPI_TYPE_UB(type, ext, ierr)
      call check(ext .eq. 24, 65)
      call MPI_TYPE_LB(type, ext, ierr)
      call check(ext .eq. 0, 66)
      call MPI_TYPE_FREE(type, ierr)
      end

c     Attributes of MPI-1, whose values are INTEGERs.
      subroutine values(me, n)
      implicit none
      include 'mpif.h'
      integer me, n, ierr, key, value, comm, copies, deletes
      logical flag
      external copy, delete
      common /counts/ copies, deletes
      copies = 0
      deletes = 0
      call MPI_ATTR_GET(MPI_COMM_WORLD, MPI_TAG_UB, value, flag, ierr)
      call check(flag .and. value .ge. 32767, 70)
      call MPI_KEYVAL_CREATE(copy, delete, key, 40, ierr)
      call MPI_ATTR_GET(MPI_COMM_WORLD, key, value, flag, ierr)
      call check(.not. flag, 71)
      call MPI_ATTR_PUT(MPI_COMM_WORLD, key, -3, ierr)
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierr)
      call MPI_ATTR_GET(comm, key, value, flag, ierr)
      call check(flag .and. value .eq. 37 .and. copies .eq. 1, 72)
      call MPI_COMM_FREE(comm, ierr)
      call check(deletes .eq. 1 .and. comm .eq. MPI_COMM_NULL, 73)
      call MPI_ATTR_DELETE(MPI_COMM_WORLD, key, ierr)
      call check(deletes .eq. 2, 74)
      call MPI_KEYVAL_FREE(key, ierr)
      call check(key .eq. MPI_KEYVAL_INVALID, 75)
      call MPI_KEYVAL_CREATE(MPI_DUP_FN, MPI_NULL_DELETE_FN, key, 0,
     &  ierr)
      call MPI_ATTR_PUT(MPI_COMM_WORLD, key, 8, ierr)
      call MPI_COMM_DUP(MPI_COMM_WORLD, comm, ierr)
      call MPI_ATTR_GET(comm, key, value, flag, ierr)
      call check(flag .and. value .eq. 8, 76)
      call MPI_COMM_FREE(comm, ierr)
      end

      subroutine copy(comm, key, extra, in, out, flag, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, extra, in, out, ierr, copies, deletes
      logical flag
      common /counts/ copies, deletes
      call check(comm .eq. MPI_COMM_WORLD, 77)
      copies = copies + 1
      out = in + extra
      flag = .true.
      ierr = MPI_SUCCESS
      end

      subroutine delete(comm, key, value, extra, ierr)
      implicit none
      include 'mpif.h'
      integer comm, key, value, extra, ierr, copies, deletes
      common /counts/ copies, deletes
      call check(extra .eq. 40, 78)
      deletes = deletes + 1
      ierr = MPI_SUCCESS
      end

c     Strings are padded with blanks, and truncated.
      subroutine texts(me)
      implicit none
      include 'mpif.h'
      integer me, ierr, len, info
      character*(MPI_MAX_OBJECT_NAME) name
      character*4 short
      character*20 value
      logical flag
      name = '?'
      call MPI_COMM_GET_NAME(MPI_COMM_WORLD, name, len, ierr)
      call check(name .eq. 'MPI_COMM_WORLD' .and. len .eq. 14, 80)
      call MPI_COMM_SET_NAME(MPI_COMM_SELF, 'a name   ', ierr)
      call MPI_COMM_GET_NAME(MPI_COMM_SELF, short, len, ierr)
      call check(short .eq. 'a na' .and. len .eq. 6, 81)
      call MPI_INFO_CREATE(info, ierr)
      call MPI_INFO_SET(info, ' key ', ' some value  ', ierr)
      value = 'x'
      call MPI_INFO_GET(info, 'key', 20, value, flag, ierr)
      call check(flag .and. value .eq. 'some value', 82)
      call MPI_INFO_GET_VALUELEN(info, 'key', len, flag, ierr)
      call check(flag .and. len .eq. 10, 83)
      len = 4
      call MPI_INFO_GET_STRING(info, 'key', len, value, flag, ierr)
      call check(flag .and. value .eq. 'some' .and. len .eq. 10, 84)
      call MPI_INFO_GET(info, 'none', 20, value, flag, ierr)
      call check(.not. flag .and. value .eq. 'some', 85)
      call MPI_INFO_FREE(info, ierr)
      call check(info .eq. MPI_INFO_NULL, 86)
      call MPI_GET_PROCESSOR_NAME(name, len, ierr)
      call check(len .gt. 0 .and. name(len + 1:) .eq. ' ', 87)
      end

c     Errors are returned, or passed to a subroutine of the program.
      subroutine errors(me)
      implicit none
      include 'mpif.h'
      integer me, ierr, class, len, handler, told(2), other
      character*(MPI_MAX_ERROR_STRING) text
      double precision t
      external tell
      common /heard/ told
      call MPI_COMM_SET_ERRHANDLER(MPI_COMM_WORLD, MPI_ERRORS_RETURN,
     &  ierr)
      call MPI_SEND(me, 1, MPI_INTEGER, 99, 0, MPI_COMM_WORLD, ierr)
      call MPI_ERROR_CLASS(ierr, class, other)
      call check(class .eq. MPI_ERR_RANK, 90)
      call MPI_ERROR_STRING(ierr, text, len, other)
      call check(len .gt. 10 .and. text(len + 1:) .eq. ' ', 91)
      call MPI_ERRHANDLER_CREATE(tell, handler, ierr)
      call MPI_ERRHANDLER_SET(MPI_COMM_WORLD, handler, ierr)
      call MPI_ERRHANDLER_GET(MPI_COMM_WORLD, other, ierr)
      call check(ierr .eq. MPI_SUCCESS, 92)
      told(1) = 0
      call MPI_SEND(me, -1, MPI_INTEGER, 0, 0, MPI_COMM_WORLD, ierr)
      call check(told(1) .eq. MPI_COMM_WORLD, 93)
      call check(told(2) .eq. MPI_ERR_COUNT, 94)
      call MPI_ERRHANDLER_SET(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL,
     &  ierr)
      call MPI_ERRHANDLER_FREE(handler, ierr)
      t = MPI_WTIME()
      call check(t .ge. 0 .and. MPI_WTICK() .lt. 1d-3, 95)
      end

      subroutine tell(comm, code)
      implicit none
      integer comm, code, told(2)
      common /heard/ told
      told(1) = comm
      told(2) = code
      end
