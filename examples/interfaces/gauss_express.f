c     Gaussian elimination by rows on the nodes of Express: the program of gauss_nx.f, with the calls of Ahmad and Wu's second program.
c     They wrote the row to each node in turn, because a broadcast of Express names its origin. Here the second combination has told it.
      program gauss
      integer kxinit, kxpara, kxsync, kxcomb, kxbrod
      external kxinit, kxpara, kxsync, kxcomb, kxbrod
      integer nocare, norder, nonode, ihost, ialnod, ialprc
      common /xpress/ nocare, norder, nonode, ihost, ialnod, ialprc
      integer rowtyp, xtyp, comtyp
      parameter (rowtyp = 1, xtyp = 2, comtyp = 3)
      integer n, me, nodes, rows, k, row, low, mine, j, nd(4), stat
      integer when(512), owner(512), unknowns, larger, lower
      double precision a(513, 512), pivot(513), x(512)
      double precision value, high, start, seconds
      external unknowns, seconds, larger, lower

      stat = kxinit()
      stat = kxpara(nd)
      me = nd(1)
      nodes = nd(2)
      n = unknowns()
      call fill(n, me + 1, nodes, rows, a, when)
      stat = kxsync()
      start = seconds()
      do 20 k = 1, n
         call best(n, k, me + 1, nodes, rows, a, when, value, row)
         high = value
         stat = kxcomb(high, larger, 8, 1, ialnod, norder, comtyp)
c        Of equal ones the first row.
         low = n + 1
         if (value .eq. high) low = row
         stat = kxcomb(low, lower, 4, 1, ialnod, norder, comtyp)
         owner(k) = mod(low - 1, nodes)
         if (owner(k) .eq. me) then
            mine = (low - 1) / nodes + 1
            when(mine) = k
            do 10 j = k, n + 1
               pivot(j) = a(j, mine)
   10       continue
         end if
         j = 8 * (n + 2 - k)
         stat = kxbrod(pivot(k), owner(k), j, ialnod, norder, rowtyp)
         call sweep(n, k, rows, a, when, pivot)
   20 continue
      do 30 k = n, 1, -1
         call solve(n, k, rows, a, when, x)
         stat = kxbrod(x(k), owner(k), 8, ialnod, norder, xtyp)
         call insert(n, k, rows, a, when, x)
   30 continue
      if (me .eq. 0) call tell(n, nodes, seconds() - start, x)
      end

      integer function larger(one, other, size)
      integer size
      double precision one, other
      one = max(one, other)
      larger = 0
      end

      integer function lower(one, other, size)
      integer size, one, other
      one = min(one, other)
      lower = 0
      end
