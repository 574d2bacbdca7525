! gauss.f90: Gaussian elimination with partial pivoting, in three ways: gauss.h in Fortran, whose head describes them. The same equations have the
! same pivots.
module elimination
   use clock
   implicit none
   private
   public :: gauss

   interface
      ! Finds the largest value of all tasks, of equal ones that of the lowest task; all get it, and the task that has it.
      subroutine largest_of_all(value, task)
         double precision, intent(inout) :: value
         integer, intent(inout) :: task
      end subroutine
      ! Sends `count` numbers from one task, which all know, to all others.
      subroutine broadcast(values, count, from)
         integer, intent(in) :: count, from
         double precision, intent(inout) :: values(count)
      end subroutine
   end interface

   double precision, parameter :: TOLERANCE = 1d-6

   ! This task's part of the equations. By rows `part(:, i)` is a row, whose last element is its right side; by columns it is a column, and that
   ! behind the last unknown's is the right sides.
   type :: share
      integer :: n, rank, size, first, count
      logical :: scattered
      double precision, allocatable :: part(:, :)
      integer, allocatable :: step(:)  ! by row, in which step it was the pivot, or 0; by rows only of this task's
      integer, allocatable :: order(:) ! row of each step, where all rows are known
      double precision, allocatable :: message(:) ! the pivot's row, or the number of the pivot and the multipliers
   end type

   integer, parameter :: WIDE = selected_int_kind(38) ! holds the product of a word of 64 bits and one of 32
   integer(WIDE), parameter :: HALF = 2_WIDE**32 - 1, WORD = 2_WIDE**64 - 1

contains

   ! Returns the product of two words of 64 bits without a sign, modulo 2**64.
   pure integer(WIDE) function product_of(a, b)
      integer(WIDE), intent(in) :: a, b
      product_of = iand(a * iand(b, HALF) + shiftl(iand(a * shiftr(b, 32), HALF), 32), WORD)
   end function

   ! Returns element (row, column) of the matrix, counted from 1: a number between -1 and 1 that depends on the place alone.
   pure double precision function element(row, column)
      integer, intent(in) :: row, column
      integer(WIDE), parameter :: A = int(z'9E3779B97F4A7C15', WIDE), B = int(z'BF58476D1CE4E5B9', WIDE)
      integer(WIDE), parameter :: C = int(z'94D049BB133111EB', WIDE), SEED = 88172645463325252_WIDE
      integer(WIDE) :: x
      x = iand(SEED + (row - 1) * A + (column - 1) * B, WORD)
      x = product_of(ieor(x, shiftr(x, 30)), B)
      x = product_of(ieor(x, shiftr(x, 27)), C)
      element = dble(shiftr(x, 11)) * 2d0**(-52) - 1
   end function

   ! Returns the solution's unknown j.
   pure double precision function unknown(j)
      integer, intent(in) :: j
      unknown = 1 + mod(j - 1, 3)
   end function

   ! Returns an element, or the right side of a row behind its last one.
   pure double precision function filled(n, row, column)
      integer, intent(in) :: n, row, column
      integer :: j
      if (column <= n) then
         filled = element(row, column)
      else
         filled = 0
         do j = 1, n
            filled = filled + element(row, j) * unknown(j)
         end do
      end if
   end function

   subroutine timed_largest(value, task)
      double precision, intent(inout) :: value
      integer, intent(inout) :: task
      double precision :: start
      start = clock_seconds()
      call largest_of_all(value, task)
      seconds_communicating = seconds_communicating + clock_seconds() - start
   end subroutine

   subroutine timed_broadcast(values, count, from)
      integer, intent(in) :: count, from
      double precision, intent(inout) :: values(count)
      double precision :: start
      start = clock_seconds()
      call broadcast(values, count, from)
      seconds_communicating = seconds_communicating + clock_seconds() - start
   end subroutine

   ! ---- by rows ----------------------------------------------------------------------------------------

   subroutine rows_begin(g)
      type(share), intent(inout) :: g
      integer :: i, j
      g%first = first_of(g%n, g%rank, g%size)
      g%count = first_of(g%n, g%rank + 1, g%size) - g%first
      allocate (g%part(g%n + 1, g%count), g%step(g%count))
      g%step = 0
      do i = 1, g%count
         do j = 1, g%n + 1
            g%part(j, i) = filled(g%n, g%first + i, j)
         end do
      end do
   end subroutine

   subroutine rows_eliminate(g)
      type(share), intent(inout) :: g
      double precision :: value, factor
      integer :: k, i, mine, task, last
      last = g%n + 1
      do k = 1, g%n
         value = -1
         mine = 0
         do i = 1, g%count
            if (g%step(i) == 0 .and. abs(g%part(k, i)) > value) then
               value = abs(g%part(k, i))
               mine = i
            end if
         end do
         task = g%rank
         call timed_largest(value, task)
         if (task == g%rank) then
            g%step(mine) = k
            g%message(k:) = g%part(k:, mine)
         end if
         call timed_broadcast(g%message(k), last - k + 1, task)
         do i = 1, g%count
            if (g%step(i) /= 0) cycle
            factor = g%part(k, i) / g%message(k)
            g%part(k:, i) = g%part(k:, i) - factor * g%message(k:)
         end do
      end do
   end subroutine

   ! From the last unknown to the first: the task with the row of its step computes it.
   double precision function rows_error(g)
      type(share), intent(inout) :: g
      double precision :: x(g%n), value
      integer :: k, i, mine, task
      rows_error = 0
      do k = g%n, 1, -1
         value = -1
         mine = 0
         do i = 1, g%count
            if (g%step(i) == k) then
               value = 1
               mine = i
            end if
         end do
         task = g%rank
         call largest_of_all(value, task)
         if (task == g%rank) then
            x(k) = (g%part(g%n + 1, mine) - sum(g%part(k + 1:g%n, mine) * x(k + 1:))) / g%part(k, mine)
         end if
         call broadcast(x(k), 1, task)
         rows_error = max(rows_error, abs(x(k) - unknown(k)))
      end do
   end function

   ! ---- by columns ---------------------------------------------------------------------------------------

   ! Returns the task that has a column.
   integer function owner(g, column)
      type(share), intent(in) :: g
      integer, intent(in) :: column
      if (g%scattered) then
         owner = mod(column - 1, g%size)
         return
      end if
      owner = 0
      do while (first_of(g%n + 1, owner + 1, g%size) < column)
         owner = owner + 1
      end do
   end function

   ! Returns the number of column `place` of this task.
   integer function column_at(g, place)
      type(share), intent(in) :: g
      integer, intent(in) :: place
      column_at = merge(g%rank + 1 + (place - 1) * g%size, g%first + place, g%scattered)
   end function

   ! Returns the place of a column that this task has.
   integer function place_of(g, column)
      type(share), intent(in) :: g
      integer, intent(in) :: column
      place_of = merge((column - 1) / g%size + 1, column - g%first, g%scattered)
   end function

   subroutine columns_begin(g)
      type(share), intent(inout) :: g
      integer :: i, place
      g%first = first_of(g%n + 1, g%rank, g%size)
      g%count = merge((g%n - g%rank + g%size) / g%size, first_of(g%n + 1, g%rank + 1, g%size) - g%first, g%scattered)
      allocate (g%part(g%n, g%count), g%step(g%n), g%order(g%n))
      g%step = 0
      do place = 1, g%count
         do i = 1, g%n
            g%part(i, place) = filled(g%n, i, column_at(g, place))
         end do
      end do
   end subroutine

   ! Finds the pivot in a column and writes the multipliers of all rows behind its number.
   subroutine multipliers(g, column)
      type(share), intent(inout) :: g
      integer, intent(in) :: column
      integer :: place, pivot, i
      place = place_of(g, column)
      pivot = 0
      do i = 1, g%n
         if (g%step(i) /= 0) cycle
         if (pivot == 0) then
            pivot = i
         else if (abs(g%part(i, place)) > abs(g%part(pivot, place))) then
            pivot = i
         end if
      end do
      g%message(1) = pivot
      do i = 1, g%n
         g%message(i + 1) = 0
         if (g%step(i) == 0 .and. i /= pivot) g%message(i + 1) = g%part(i, place) / g%part(pivot, place)
      end do
   end subroutine

   subroutine columns_eliminate(g)
      type(share), intent(inout) :: g
      integer :: k, from, pivot, place
      double precision :: factor
      do k = 1, g%n
         from = owner(g, k)
         if (from == g%rank) call multipliers(g, k)
         call timed_broadcast(g%message, g%n + 1, from)
         pivot = int(g%message(1))
         g%step(pivot) = k
         g%order(k) = pivot
         do place = 1, g%count
            if (column_at(g, place) < k) cycle
            factor = g%part(pivot, place)
            g%part(:, place) = g%part(:, place) - g%message(2:) * factor
         end do
      end do
   end subroutine

   ! The right side travels from the task of one unknown's column to the next one's.
   double precision function columns_error(g)
      type(share), intent(inout) :: g
      double precision :: right(g%n), x(1)
      integer :: k, from, place, i
      columns_error = 0
      from = owner(g, g%n + 1)
      if (from == g%rank) right = g%part(:, place_of(g, g%n + 1))
      do k = g%n, 1, -1
         call broadcast(right, g%n, from)
         from = owner(g, k)
         if (from == g%rank) then
            place = place_of(g, k)
            x = right(g%order(k)) / g%part(g%order(k), place)
            do i = 1, k - 1
               right(g%order(i)) = right(g%order(i)) - x(1) * g%part(g%order(i), place)
            end do
         end if
         call broadcast(x, 1, from)
         columns_error = max(columns_error, abs(x(1) - unknown(k)))
      end do
   end function

   ! ---- the program --------------------------------------------------------------------------------------

   ! Runs `gauss WAY UNKNOWNS` as one of `size` tasks; returns the exit status of the program.
   integer function gauss(rank, size)
      integer, intent(in) :: rank, size
      type(share) :: g
      character(WORD_LENGTH) :: way
      double precision :: start, took, communicating, nothing, error
      logical :: by_rows, verified
      integer :: task
      way = argument(1)
      if (way == ' ') way = 'row-block'
      g%n = number(2, 256)
      g%rank = rank
      g%size = size
      by_rows = way == 'row-block'
      g%scattered = way == 'column-scattered'
      if (.not. by_rows .and. .not. g%scattered .and. way /= 'column-block') &
         call refuse('gauss', 'the algorithm must be one of row-block, column-block, column-scattered')
      if (g%n < 1 .or. g%n > 30000) call refuse('gauss', 'the number of unknowns must be 1 to 30000')
      allocate (g%message(g%n + 1))
      if (by_rows) then
         call rows_begin(g)
      else
         call columns_begin(g)
      end if

      nothing = 0
      task = rank
      call largest_of_all(nothing, task) ! nobody is late when the clock starts
      seconds_communicating = 0
      start = clock_seconds()
      if (by_rows) then
         call rows_eliminate(g)
      else
         call columns_eliminate(g)
      end if
      took = clock_seconds() - start
      communicating = seconds_communicating

      if (by_rows) then
         error = rows_error(g)
      else
         error = columns_error(g)
      end if
      verified = error < TOLERANCE
      if (rank == 0) then
         write (*, '(3a, i0, a, i0, 9a)') 'gauss-', trim(way), ', ', g%n, ' unknowns, ', size, ' tasks: ', &
            trim(merge('verified    ', 'NOT VERIFIED', verified)), ', ', fixed(took, 6), ' s, ', &
            fixed(2d-6 / 3 * dble(g%n)**3 / took, 2), ' Mop/s, ', fixed(communicating, 6), ' s in communications'
      end if
      gauss = merge(0, 1, verified)
   end function
end module
