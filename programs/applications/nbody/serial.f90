! Bodies that attract each other, without a message-passing environment: what the others are measured against.
program main
   use bodies, only: nbody
   call exit(nbody(0, 1))
end program

subroutine sum_of_all(values, count)
   integer, intent(in) :: count
   double precision, intent(inout) :: values(count)
end subroutine

subroutine pass_on(values, count, coming, room)
   integer, intent(in) :: count, room
   double precision, intent(in) :: values(count)
   double precision, intent(inout) :: coming(room)
   coming(1:count) = values
end subroutine
