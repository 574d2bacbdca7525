c     Gaussian elimination by rows on the nodes of NX, as Ahmad and Wu (1991) wrote it for the iPSC/2: rows are dealt to the nodes in
c     turn, the pivot is found by global operations, and its node sends the row to all others, which need not know from whom it comes.
      program gauss
      include 'fnx.h'
      integer rowtyp, xtyp
      parameter (rowtyp = 1, xtyp = 1000)
      integer n, me, nodes, rows, k, row, low, mine, j, iwork
      integer when(512), owner(512), unknowns
      double precision a(513, 512), pivot(513), x(512)
      double precision value, high, work, start, seconds
      external unknowns, seconds

      me = mynode()
      nodes = numnodes()
      n = unknowns()
      call fill(n, me + 1, nodes, rows, a, when)
      call gsync()
      start = seconds()
      do 20 k = 1, n
         call best(n, k, me + 1, nodes, rows, a, when, value, row)
         high = value
         call gdhigh(high, 1, work)
c        Of equal ones the first row.
         low = n + 1
         if (value .eq. high) low = row
         call gilow(low, 1, iwork)
         owner(k) = mod(low - 1, nodes)
         if (owner(k) .eq. me) then
            mine = (low - 1) / nodes + 1
            when(mine) = k
            do 10 j = k, n + 1
               pivot(j) = a(j, mine)
   10       continue
            call csend(rowtyp, pivot(k), 8 * (n + 2 - k), -1, 0)
         else
            call crecv(rowtyp, pivot(k), 8 * (n + 2 - k))
         end if
         call sweep(n, k, rows, a, when, pivot)
   20 continue
c     Unknowns come from several nodes, and nothing keeps these in step: each has a type of its own.
      do 30 k = n, 1, -1
         if (owner(k) .eq. me) then
            call solve(n, k, rows, a, when, x)
            call csend(xtyp + k, x(k), 8, -1, 0)
         else
            call crecv(xtyp + k, x(k), 8)
         end if
         call insert(n, k, rows, a, when, x)
   30 continue
      if (me .eq. 0) call tell(n, nodes, seconds() - start, x)
      end
