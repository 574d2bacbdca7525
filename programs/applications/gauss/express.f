c     Gaussian elimination, on Express.
      program main
      use elimination, only: gauss
      integer nd(4), kxinit, kxpara
      external kxinit, kxpara
      if (kxinit() .lt. 0) call exit(1)
      if (kxpara(nd) .lt. 0) call exit(1)
      call exit(gauss(nd(1), nd(2)))
      end

c     A combination calls a function of the program, here for pairs of a value and a node.
      subroutine largest_of_all(value, task)
      integer nocare, norder, nonode, ihost, ialnod, ialprc
      common /xpress/ nocare, norder, nonode, ihost, ialnod, ialprc
      double precision value, pair(2)
      integer task, kxcomb, larger
      external kxcomb, larger
      pair(1) = value
      pair(2) = task
      if (kxcomb(pair, larger, 16, 1, ialnod, norder, 100) .lt. 0)
     &   call exit(1)
      value = pair(1)
      task = int(pair(2))
      end

      integer function larger(one, other, bytes)
      double precision one(2), other(2)
      integer bytes
      if (other(1) .gt. one(1) .or.
     &    (other(1) .eq. one(1) .and. other(2) .lt. one(2))) then
         one(1) = other(1)
         one(2) = other(2)
      end if
      larger = 0
      end

c     A broadcast of Express names its origin. Ahmad and Wu (1991), whose nodes did not know it, wrote to each node in turn.
      subroutine broadcast(values, count, from)
      integer nocare, norder, nonode, ihost, ialnod, ialprc
      common /xpress/ nocare, norder, nonode, ihost, ialnod, ialprc
      integer count, from, kxbrod
      external kxbrod
      double precision values(count)
      if (kxbrod(values, from, 8 * count, ialnod, norder, 101) .lt. 0)
     &   call exit(1)
      end
