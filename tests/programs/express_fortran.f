c     Express by its Fortran names, short and long, on any number of nodes. Prints OK, or the line of the check that
c     failed.
      program expres
      integer kxinit, kxpara, kxread, kxwrit, kxwrite, kxchan, kxtest
      integer kxprob, kxvrea, kxvread, kxvwri, kxvwrit, kxvcha, kxvchan
      integer kxbrod, kxbroad, kxcomb, kxconc, kxsync, kxsend, kxrecv
      integer kxwait, kxhand, kxunha, kxsema
      integer kxgdin, kxgdbc, kxgdco, kxgdpr, kxgdno, kxgdsi, kxgdsp
      external kxinit, kxpara, kxread, kxwrit, kxwrite, kxchan, kxtest
      external kxprob, kxvrea, kxvread, kxvwri, kxvwrit, kxvcha, kxvchan
      external kxbrod, kxbroad, kxcomb, kxconc, kxsync, kxsend, kxrecv
      external kxwait, kxhand, kxunha, kxsema
      external kxgdin, kxgdbc, kxgdco, kxgdpr, kxgdno, kxgdsi, kxgdsp
      integer add, take
      external add, take
      integer nocare, norder, nonode, ihost, ialnod, ialprc
      common /xpress/ nocare, norder, nonode, ihost, ialnod, ialprc
      integer taken
      common /counts/ taken
      integer nd(4), me, n, left, right, i, got, src, typ, stat, sent
      integer shape(2), global(2), part(2), first(2)
      integer list(2), sizes(64), numbers(64), all(64)
      real from(20), to(20)
      double precision sum(3)

      if (kxinit() .ne. 0) stop 1
      call need(kxpara(nd) .eq. 0, 2)
      me = nd(1)
      n = nd(2)
      right = mod(me + 1, n)
      left = mod(me + n - 1, n)
      call need(n .ge. 1 .and. nd(3) .eq. ihost, 3)
      call need(nocare .ne. nonode .and. ialnod .ne. ialprc, 4)

      typ = 5
      call need(kxwrit(me, 4, right, typ) .eq. 4, 10)
      src = nocare
      typ = nocare
      call need(kxread(got, 4, src, typ) .eq. 4, 11)
      call need(got .eq. left .and. src .eq. left .and. typ .eq. 5, 12)
      call need(kxwrite(me, 4, right, 6) .eq. 4, 13)
      call need(kxread(got, 4, left, 6) .eq. 4 .and. got .eq. left, 14)
      call need(kxread(got, 4, nonode, 6) .eq. 0, 15)
      got = -1
      i = kxchan(got, 4, left, 7, me, 4, right, 7)
      call need(i .eq. 4 .and. got .eq. left, 16)
      src = nocare
      typ = 99
      call need(kxtest(src, typ) .eq. -1, 17)
      call need(kxprob(src, typ) .eq. -1, 18)

c     Every second four-byte number, to every third position.
      do 20 i = 1, 20
         from(i) = real(100 * me + i)
         to(i) = 0.0
   20 continue
      call need(kxvwri(from, 4, 8, 6, right, 8) .eq. 24, 21)
      call need(kxvrea(to, 4, 12, 6, left, 8) .eq. 24, 22)
      do 23 i = 0, 5
         call need(to(3*i + 1) .eq. real(100*left + 2*i + 1), 24)
         call need(to(3*i + 2) .eq. 0.0, 25)
   23 continue
      call need(kxvwrit(from, 4, 8, 2, right, 8) .eq. 8, 26)
      call need(kxvread(to, 4, 8, 2, left, 8) .eq. 8, 27)
      i = kxvcha(to, 4, 8, 3, left, 9, from, 4, 4, 3, right, 9)
      call need(i .eq. 12 .and. to(5) .eq. real(100*left + 3), 28)
      i = kxvchan(to, 4, 4, 3, left, 9, from, 4, 8, 3, right, 9)
      call need(i .eq. 12 .and. to(3) .eq. real(100*left + 5), 29)

      call need(kxrecv(got, 4, left, 10, stat) .eq. 0, 30)
      call need(kxsend(me, 4, right, 10, sent) .eq. 0, 31)
      call need(kxwait(stat) .eq. 4 .and. got .eq. left, 32)
      call need(kxwait(sent) .eq. 4 .and. stat .eq. 4, 33)

      got = me
      i = kxbrod(got, n - 1, 4, ialnod, norder, 11)
      call need(i .eq. 4 .and. got .eq. n - 1, 40)
      got = me + 1
      i = kxbroad(got, 0, 4, ialnod, norder, 11)
      call need(i .eq. 4 .and. got .eq. 1, 41)
      do 42 i = 1, 3
         sum(i) = dble(me * i)
   42 continue
      i = kxcomb(sum, add, 8, 3, ialnod, norder, 12)
      call need(i .eq. 0, 43)
      do 44 i = 1, 3
         call need(sum(i) .eq. dble(i * (n * (n - 1)) / 2), 45)
   44 continue
      do 46 i = 1, me + 1
         numbers(i) = me
   46 continue
      i = 4 * (me + 1)
      got = kxconc(numbers, i, all, 256, sizes, ialnod, norder, 13)
      call need(got .eq. 4 * (n * (n + 1)) / 2, 47)
      call need(sizes(n) .eq. 4*n .and. all(got/4) .eq. n - 1, 48)
      if (n .ge. 2 .and. me .lt. 2) then
         list(1) = 1
         list(2) = 0
         sum(1) = 1.0d0
         i = kxcomb(sum, add, 8, 1, 2, list, 14)
         call need(i .eq. 0 .and. sum(1) .eq. 2.0d0, 49)
      end if
      call need(kxsync() .eq. 0, 50)

      call need(kxsema(3, 1) .eq. 0, 51)
      call need(kxsema(3, -1) .eq. 0, 52)
      call need(kxsync() .eq. 0, 53)
      call need(kxsema(3, 0) .eq. 0, 54)

      call need(kxwrit(me, 4, me, 17) .eq. 4, 55)
      call need(kxtest(nocare, nocare) .eq. 4 .and. nocare .eq. -1, 56)
      i = kxread(got, 4, nocare, nocare)
      call need(i .eq. 4 .and. got .eq. me .and. nocare .eq. -1, 57)
      call need(kxsync() .eq. 0, 58)

      taken = 0
      call need(kxhand(take, nocare, 15) .eq. 0, 60)
      call need(kxwrit(me, 4, me, 15) .eq. 4, 61)
      call need(kxwrit(me, 4, me, 16) .eq. 4, 62)
      call need(kxread(got, 4, me, 16) .eq. 4 .and. taken .eq. 1, 63)
      call need(kxunha(nocare, 15) .eq. 0, 64)
      call need(kxwrit(me, 4, me, 15) .eq. 4, 65)
      call need(kxread(got, 4, me, 15) .eq. 4 .and. taken .eq. 1, 66)
      do 67 i = 1, 100
         call need(kxhand(take, nocare, 100 + i) .eq. 0, 67)
   67 continue
      call need(kxhand(take, me, 15) .eq. 0, 68)
      call need(kxwrit(me, 4, me, 15) .eq. 4, 68)
      do 69 i = 1, 100
         call need(kxunha(nocare, 100 + i) .eq. 0, 69)
   69 continue
      call need(kxunha(me, 15) .eq. 0 .and. taken .eq. 2, 69)

      call need(kxgdsp(n, 2, shape) .eq. 0, 70)
      call need(shape(1) * shape(2) .eq. n, 71)
      call need(kxgdin(2, shape) .eq. 0, 72)
      call need(kxgdno(0, 0, -1) .eq. nonode, 73)
      list(1) = 1
      list(2) = 1
      call need(kxgdbc(list) .eq. 0, 74)
      call need(kxgdno(0, 0, -1) .eq. shape(1) - 1, 75)
      call need(kxgdco(me, list) .eq. 0, 76)
      call need(list(1) + shape(1) * list(2) .eq. me, 77)
      call need(kxgdpr(list) .eq. me, 78)
      global(1) = 3 * shape(1)
      global(2) = 2 * shape(2)
      call need(kxgdsi(me, global, part, first) .eq. 0, 79)
      call need(part(1) .eq. 3 .and. first(1) .eq. 3 * list(1), 80)
      call need(part(2) .eq. 2 .and. first(2) .eq. 2 * list(2), 81)
      if (me .eq. 0) print *, 'OK'
      end

      integer function add(one, other, bytes)
      double precision one, other
      integer bytes
      call need(bytes .eq. 8, 90)
      one = one + other
      add = 0
      end

      integer function take(src, typ, length)
      integer src, typ, length, kxread, got, taken
      external kxread
      common /counts/ taken
      call need(length .eq. 4 .and. typ .eq. 15, 91)
      call need(kxread(got, length, src, typ) .eq. 4, 92)
      call need(got .eq. src, 93)
      taken = taken + 1
      take = 0
      end

      subroutine need(true, line)
      logical true
      integer line
      if (.not. true) then
         print *, 'FAIL', line
         stop 3
      end if
      end
