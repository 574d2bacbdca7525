c     Gaussian elimination with partial pivoting, by one process: gauss_nx.f and gauss_express.f have the same answer.
      program gauss
      integer n, rows, k, row, when(512), unknowns, j
      double precision a(513, 512), pivot(513), x(512), value
      double precision start, seconds
      external unknowns, seconds

      n = unknowns()
      call fill(n, 1, 1, rows, a, when)
      start = seconds()
      do 20 k = 1, n
         call best(n, k, 1, 1, rows, a, when, value, row)
         when(row) = k
         do 10 j = k, n + 1
            pivot(j) = a(j, row)
   10    continue
         call sweep(n, k, rows, a, when, pivot)
   20 continue
      do 30 k = n, 1, -1
         call solve(n, k, rows, a, when, x)
         call insert(n, k, rows, a, when, x)
   30 continue
      call tell(n, 1, seconds() - start, x)
      end
