c     Work of the Gaussian eliminations beside this file on the rows that a node has: rows first, first + step, ... of the
c     equations. Row r lies in a(1..n, r), and its right side in a(n+1, r). when(r) is the column for which it was the pivot, or 0.
c     Whoever has the rows, the same operations are done in the same order, so every program has the same answer to the last bit.

c     The equations, whose solution is 1, 2, ..., n.
      subroutine fill(n, first, step, rows, a, when)
      integer n, first, step, rows, when(*), i, j, r
      double precision a(513, *), element, right
      rows = 0
      do 20 i = first, n, step
         rows = rows + 1
         r = rows
         when(r) = 0
         right = 0.0d0
         do 10 j = 1, n
            a(j, r) = element(i, j)
            right = right + a(j, r) * dble(j)
   10    continue
         a(n + 1, r) = right
   20 continue
      end

      double precision function element(i, j)
      integer i, j, mixed
      mixed = mod(i * 7919 + j * 104729, 65521)
      mixed = mod(mixed * 257 + i * j, 32749)
      mixed = mod(mixed * 1103 + j, 2003)
      element = dble(mixed) / 1001.5d0 - 1.0d0
      end

c     The largest element of column k in a row that was no pivot yet, and the number of that row; -1 if there is none.
      subroutine best(n, k, first, step, rows, a, when, value, row)
      integer n, k, first, step, rows, when(*), row, r
      double precision a(513, *), value
      value = -1.0d0
      row = n + 1
      do 10 r = 1, rows
         if (when(r) .eq. 0 .and. abs(a(k, r)) .gt. value) then
            value = abs(a(k, r))
            row = first + (r - 1) * step
         end if
   10 continue
      end

c     Takes column k out of all rows that were no pivot yet.
      subroutine sweep(n, k, rows, a, when, pivot)
      integer n, k, rows, when(*), r, j
      double precision a(513, *), pivot(*), factor
      do 20 r = 1, rows
         if (when(r) .ne. 0) goto 20
         factor = a(k, r) / pivot(k)
         do 10 j = k, n + 1
            a(j, r) = a(j, r) - factor * pivot(j)
   10    continue
   20 continue
      end

c     Unknown k, from the row that was its pivot, if it is here.
      subroutine solve(n, k, rows, a, when, x)
      integer n, k, rows, when(*), r
      double precision a(513, *), x(*)
      do 10 r = 1, rows
         if (when(r) .eq. k) x(k) = a(n + 1, r) / a(k, r)
   10 continue
      end

c     Puts unknown k into all rows that were pivots before.
      subroutine insert(n, k, rows, a, when, x)
      integer n, k, rows, when(*), r
      double precision a(513, *), x(*)
      do 10 r = 1, rows
         if (when(r) .lt. k) a(n + 1, r) = a(n + 1, r) - a(k, r) * x(k)
   10 continue
      end

c     How many unknowns: the argument of the program, 256 without one.
      integer function unknowns()
      character*16 word
      unknowns = 256
      call getarg(1, word)
      if (word .ne. ' ') read (word, *) unknowns
      if (unknowns .lt. 1 .or. unknowns .gt. 512) then
         print *, 'gauss: from 1 to 512 unknowns'
         stop 2
      end if
      end

      double precision function seconds()
      integer*8 now, rate
      call system_clock(now, rate)
      seconds = dble(now) / dble(rate)
      end

      subroutine tell(n, nodes, took, x)
      integer n, nodes, k
      double precision took, x(*), worst, sum
      worst = 0.0d0
      sum = 0.0d0
      do 10 k = 1, n
         worst = max(worst, abs(x(k) - dble(k)))
         sum = sum + x(k)
   10 continue
      write (*, 30) n, nodes, took
      write (*, 40) x(1), x(n), sum
      if (worst .gt. 1.0d-6) then
         write (*, 50) worst
         stop 1
      end if
   30 format (i4, ' unknowns, ', i3, ' nodes, ', f10.6, ' s')
   40 format ('answer', 3es24.16)
   50 format ('wrong by ', es10.3)
      end
