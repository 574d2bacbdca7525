c     Gaussian elimination, on PVM. Its broadcast is in tasks/pvm.f.
      program main
      use elimination, only: gauss
      integer rank, size, status
      call join(rank, size)
      status = gauss(rank, size)
      call leave()
      call exit(status)
      end

      subroutine largest_of_all(value, task)
      double precision value, pair(2)
      integer task
      external larger
      pair(1) = value
      pair(2) = task
      call reduce_to_all(larger, pair, 2)
      value = pair(1)
      task = int(pair(2))
      end

c     A function of the program for a reduction: pairs of a value and a task.
      subroutine larger(type, x, y, count, info)
      integer type, count, info, k
      double precision x(count), y(count)
      do 10 k = 1, count, 2
         if (y(k) .gt. x(k) .or.
     &       (y(k) .eq. x(k) .and. y(k + 1) .lt. x(k + 1))) then
            x(k) = y(k)
            x(k + 1) = y(k + 1)
         end if
   10 continue
      info = 0
      end
