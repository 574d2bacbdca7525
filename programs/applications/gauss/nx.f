c     Gaussian elimination, on NX.
      program main
      use elimination, only: gauss
      include 'fnx.h'
      call exit(gauss(mynode(), numnodes()))
      end

c     NX finds the largest value; of the nodes that have it the lowest is the one.
      subroutine largest_of_all(value, task)
      include 'fnx.h'
      double precision value, largest, work
      integer task, iwork
      largest = value
      call gdhigh(largest, 1, work)
      if (value .ne. largest) task = numnodes()
      call gilow(task, 1, iwork)
      value = largest
      end

c     A message to node -1 goes to all others. The sender is part of its type, so that the next one cannot be taken for it.
      subroutine broadcast(values, count, from)
      include 'fnx.h'
      integer count, from
      double precision values(count)
      if (mynode() .eq. from) then
         call csend(3000 + from, values, 8 * count, -1, 0)
      else
         call crecv(3000 + from, values, 8 * count)
      end if
      end
