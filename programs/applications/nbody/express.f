c     Bodies that attract each other, on Express.
      program main
      use bodies, only: nbody
      integer nd(4), kxinit, kxpara
      external kxinit, kxpara
      integer me, nodes
      common /node/ me, nodes
      if (kxinit() .lt. 0) call exit(1)
      if (kxpara(nd) .lt. 0) call exit(1)
      me = nd(1)
      nodes = nd(2)
      call exit(nbody(me, nodes))
      end

c     A combination calls a function of the program for two vectors of this size.
      subroutine sum_of_all(values, count)
      integer nocare, norder, nonode, ihost, ialnod, ialprc
      common /xpress/ nocare, norder, nonode, ihost, ialnod, ialprc
      integer count, kxcomb, add
      external kxcomb, add
      double precision values(count)
      if (kxcomb(values, add, 8 * count, 1, ialnod, norder, 100) .lt. 0)
     &   call exit(1)
      end

      integer function add(one, other, bytes)
      integer bytes, k
      double precision one(*), other(*)
      do 10 k = 1, bytes / 8
         one(k) = one(k) + other(k)
   10 continue
      add = 0
      end

c     A write of Express does not wait for its read.
      subroutine pass_on(values, count, coming, room)
      integer count, room, next, last, kxwrit, kxread
      external kxwrit, kxread
      integer me, nodes
      common /node/ me, nodes
      double precision values(count), coming(room)
      next = mod(me + 1, nodes)
      last = mod(me + nodes - 1, nodes)
      if (kxwrit(values, 8 * count, next, 103) .lt. 0) call exit(1)
      if (kxread(coming, 8 * room, last, 103) .lt. 0) call exit(1)
      end
