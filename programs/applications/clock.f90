! clock.f90: time, arguments and shares of the work, for all applications in Fortran: what clock.h is for those in C.
module clock
   use, intrinsic :: iso_fortran_env, only: error_unit, int64
   implicit none
   private
   public :: argument, clock_seconds, fixed, first_of, have_words, number, refuse, seconds_communicating
   public :: MAX_WORDS, WORD_LENGTH

   integer, parameter :: MAX_WORDS = 4, WORD_LENGTH = 32 ! of the arguments that a program looks at, the bound of their number and of their characters

   ! Seconds spent in communications, set to 0 where the timed part begins.
   double precision :: seconds_communicating = 0

   ! The arguments, where they are not those of the command: a task that PVM has started for Fortran has none there.
   character(WORD_LENGTH) :: words(MAX_WORDS)
   logical :: has_words = .false.

contains

   ! Returns seconds since some moment.
   double precision function clock_seconds()
      integer(int64) :: now, rate
      call system_clock(now, rate)
      clock_seconds = dble(now) / dble(rate)
   end function

   ! Takes these as the arguments of the program.
   subroutine have_words(told)
      character(WORD_LENGTH), intent(in) :: told(MAX_WORDS)
      words = told
      has_words = .true.
   end subroutine

   ! Returns an argument of the program, or blanks where there is none.
   character(WORD_LENGTH) function argument(place)
      integer, intent(in) :: place
      if (has_words) then
         argument = words(place)
      else
         call get_command_argument(place, argument)
      end if
   end function

   ! Returns an argument as a number: `otherwise` where there is none, 0 if it is no number.
   integer function number(place, otherwise)
      integer, intent(in) :: place, otherwise
      character(WORD_LENGTH) :: word
      integer :: failed
      number = otherwise
      word = argument(place)
      if (word == ' ') return
      read (word, '(i32)', iostat=failed) number
      if (failed /= 0) number = 0
   end function

   ! Returns the first of `all` things that belongs to task `rank` of `size`; those of the next task begin where its end.
   integer function first_of(all, rank, size)
      integer, intent(in) :: all, rank, size
      first_of = int(int(all, int64) * rank / size)
   end function

   ! Returns a number with so many decimals, as C writes it.
   function fixed(value, decimals) result(text)
      double precision, intent(in) :: value
      integer, intent(in) :: decimals
      character(:), allocatable :: text
      character(40) :: field, form
      write (form, '("(f40.", i0, ")")') decimals
      write (field, form) value
      text = trim(adjustl(field))
   end function

   ! Ends the program because it was started in a way that it cannot work in.
   subroutine refuse(program, reason)
      character(*), intent(in) :: program, reason
      write (error_unit, '(4a)') program, ': ', reason
      call exit(2)
   end subroutine
end module
