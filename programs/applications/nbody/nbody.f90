! nbody.f90: bodies that attract each other, by the simple algorithm of O(N^2), on a ring of tasks: nbody.h in Fortran, whose head describes it.
module bodies
   use clock
   implicit none
   private
   public :: nbody

   interface
      ! Adds up, element by element, the values of all tasks, at all of them.
      subroutine sum_of_all(values, count)
         integer, intent(in) :: count
         double precision, intent(inout) :: values(count)
      end subroutine
      ! Sends `count` numbers to the task behind this one; as many of the task before come to `coming`, or fewer, if it has fewer bodies. Behind
      ! the last task is the first.
      subroutine pass_on(values, count, coming, room)
         integer, intent(in) :: count, room
         double precision, intent(in) :: values(count)
         double precision, intent(inout) :: coming(room)
      end subroutine
   end interface

   double precision, parameter :: SOFTENING = 1d-4 ! the square of a length: no two bodies come closer in effect
   double precision, parameter :: TIME_STEP = 1d-3
   integer, parameter :: WIDTH = 4 ! numbers of a copy: position and mass

   type :: share
      integer :: bodies, rank, size, first, count, room ! `room` bodies are the most that a task has
      double precision, allocatable :: own(:, :), here(:, :), coming(:, :)
      double precision, allocatable :: velocity(:, :), force(:, :) ! the force is that on a unit of mass
   end type

contains

   integer function count_of(n, task)
      type(share), intent(in) :: n
      integer, intent(in) :: task
      count_of = first_of(n%bodies, task + 1, n%size) - first_of(n%bodies, task, n%size)
   end function

   ! Returns a number between 0 and 1 for a body, counted from 1, and an axis.
   double precision function place(body, axis)
      integer, intent(in) :: body, axis
      double precision :: x
      x = sin(12.9898d0 * body + 78.233d0 * axis) * 43758.5453d0
      place = x - floor(x)
   end function

   ! Bodies of equal masses in a cube, which turn slowly around its middle.
   subroutine begin(n)
      type(share), intent(inout) :: n
      integer :: task, i, axis
      n%first = first_of(n%bodies, n%rank, n%size)
      n%count = count_of(n, n%rank)
      n%room = 0
      do task = 0, n%size - 1
         n%room = max(n%room, count_of(n, task))
      end do
      allocate (n%own(WIDTH, n%room), n%here(WIDTH, n%room), n%coming(WIDTH, n%room), n%velocity(3, n%room), n%force(3, n%room))
      n%velocity = 0
      do i = 1, n%count
         do axis = 1, 3
            n%own(axis, i) = place(n%first + i, axis) - 0.5d0
         end do
         n%own(4, i) = 1d0 / n%bodies
         n%velocity(1, i) = -0.5d0 * n%own(2, i)
         n%velocity(2, i) = 0.5d0 * n%own(1, i)
      end do
   end subroutine

   ! Adds the attraction of copies; `energy` grows by twice their part of the potential energy. A body does not attract itself: its distance is 0.
   subroutine attract(own, force, copies, energy)
      double precision, intent(in), contiguous :: own(:, :), copies(:, :)
      double precision, intent(inout), contiguous :: force(:, :)
      double precision, intent(inout) :: energy
      double precision :: x, y, z, fx, fy, fz, inverse, pull, potential, part
      integer :: i, j
      part = 0
      do i = 1, size(own, 2)
         fx = 0
         fy = 0
         fz = 0
         potential = 0
         do j = 1, size(copies, 2)
            x = copies(1, j) - own(1, i)
            y = copies(2, j) - own(2, i)
            z = copies(3, j) - own(3, i)
            inverse = 1 / sqrt(x * x + y * y + z * z + SOFTENING)
            pull = copies(4, j) * inverse
            potential = potential + pull
            pull = pull * (inverse * inverse)
            fx = fx + pull * x
            fy = fy + pull * y
            fz = fz + pull * z
         end do
         force(1, i) = force(1, i) + fx
         force(2, i) = force(2, i) + fy
         force(3, i) = force(3, i) + fz
         part = part - own(4, i) * potential
      end do
      energy = energy + part
   end subroutine

   ! Computes all forces; `energy` becomes twice this task's part of the potential energy.
   subroutine forces(n, energy)
      type(share), intent(inout) :: n
      double precision, intent(out) :: energy
      double precision, allocatable :: swap(:, :)
      double precision :: start
      integer :: turn, count
      n%force = 0
      n%here(:, 1:n%count) = n%own(:, 1:n%count)
      energy = 0
      do turn = 0, n%size - 1
         count = count_of(n, mod(n%rank + n%size - turn, n%size))
         call attract(n%own(:, 1:n%count), n%force(:, 1:n%count), n%here(:, 1:count), energy)
         if (turn + 1 == n%size) exit
         start = clock_seconds()
         call pass_on(n%here, count * WIDTH, n%coming, n%room * WIDTH)
         seconds_communicating = seconds_communicating + clock_seconds() - start
         call move_alloc(n%here, swap)
         call move_alloc(n%coming, n%here)
         call move_alloc(swap, n%coming)
      end do
   end subroutine

   ! Half a step of velocities, and, if it moves, a step of positions.
   subroutine push(n, moves)
      type(share), intent(inout) :: n
      logical, intent(in) :: moves
      n%velocity(:, 1:n%count) = n%velocity(:, 1:n%count) + 0.5d0 * TIME_STEP * n%force(:, 1:n%count)
      if (moves) n%own(1:3, 1:n%count) = n%own(1:3, 1:n%count) + TIME_STEP * n%velocity(:, 1:n%count)
   end subroutine

   ! Adds up energy and momentum of all bodies, the energy first. `potential` is twice this task's part.
   subroutine add_up(n, potential, totals)
      type(share), intent(in) :: n
      double precision, intent(in) :: potential
      double precision, intent(out) :: totals(4)
      integer :: i, axis
      totals = 0
      totals(1) = potential / 2
      do i = 1, n%count
         do axis = 1, 3
            totals(1) = totals(1) + 0.5d0 * n%own(4, i) * n%velocity(axis, i) * n%velocity(axis, i)
            totals(1 + axis) = totals(1 + axis) + n%own(4, i) * n%velocity(axis, i)
         end do
      end do
      call sum_of_all(totals, 4)
   end subroutine

   ! Runs `nbody BODIES STEPS` as one of `size` tasks; returns the exit status of the program. Energy and momentum must be kept.
   integer function nbody(rank, size)
      integer, intent(in) :: rank, size
      type(share) :: n
      double precision :: before(4), after(4), potential, start, took, communicating
      integer :: steps, step
      logical :: verified
      n%bodies = number(1, 512)
      steps = number(2, 10)
      n%rank = rank
      n%size = size
      if (n%bodies < 2 .or. n%bodies > 2**20 .or. steps < 1) &
         call refuse('nbody', 'the number of bodies must be 2 to 1048576, the number of steps at least 1')
      call begin(n)
      call forces(n, potential)
      call add_up(n, potential, before)

      seconds_communicating = 0
      start = clock_seconds()
      do step = 1, steps
         call push(n, .true.)
         call forces(n, potential)
         call push(n, .false.)
      end do
      took = clock_seconds() - start
      communicating = seconds_communicating
      call add_up(n, potential, after)
      verified = abs(after(1) / before(1) - 1) < 1d-4 .and. maxval(abs(after(2:) - before(2:))) < 1d-12
      if (rank == 0) then
         write (*, '(3(a, i0), 9a)') 'nbody, ', n%bodies, ' bodies, ', steps, ' steps, ', size, ' tasks: ', &
            trim(merge('verified    ', 'NOT VERIFIED', verified)), ', ', fixed(took, 6), ' s, energy ', fixed(after(1), 9), ', ', &
            fixed(communicating, 6), ' s in communications'
      end if
      nbody = merge(0, 1, verified)
   end function
end module
