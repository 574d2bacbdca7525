! Gaussian elimination, without a message-passing environment: what the others are measured against.
program main
   use elimination, only: gauss
   call exit(gauss(0, 1))
end program

! The only task has the largest value.
subroutine largest_of_all(value, task)
   double precision, intent(inout) :: value
   integer, intent(inout) :: task
end subroutine

subroutine broadcast(values, count, from)
   integer, intent(in) :: count, from
   double precision, intent(inout) :: values(count)
end subroutine
