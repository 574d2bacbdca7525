c     The Fortran interface of NX: INTEGERs have 32 bits, also in vectors and information arrays. Three nodes.
      program nxfor
      include 'fcube.h'
      integer me, n, i, mid, other, got, word, list(2), info(8)
      integer ints(4), iwork(4), lengths(3), all(6), count
      integer rows, cols, first, last
      real singles(3), swork(3)
      double precision doubles(3), dwork(3), t0
      integer calls, told(5)
      common /heard/ calls, told
      external widest, note, noteown
      integer _csend, _crecv, _msgwait, _gisum, _gcol
      external _csend, _crecv, _msgwait, _gisum, _gcol

      me = mynode()
      n = numnodes()
      call check(n .eq. 3 .and. mypid() .eq. 0, 1)
      call check(myptype() .eq. 0 .and. myhost() .eq. 3, 2)
      call check(nodedim() .eq. 2, 3)
      call check(mypart(rows, cols) .eq. 0 .and. cols .eq. 3, 4)
      call setptype(0)

c     Round a ring.
      word = 10 * me
      call csend(7, word, 4, mod(me + 1, n), 0)
      call crecv(7, got, 4)
      call check(got .eq. 10 * mod(me + 2, n), 5)
      call check(infotype() .eq. 7 .and. infocount() .eq. 4, 6)
      call check(infonode() .eq. mod(me + 2, n), 7)
      call check(infopid() .eq. 0 .and. infoptype() .eq. 0, 8)
      i = csendrecv(8, word, 4, mod(me + 1, n), 0, 8, got, 4)
      call check(i .eq. 4 .and. got .eq. 10 * mod(me + 2, n), 9)

c     Asynchronous messages and their completion.
      mid = irecv(9, got, 4)
      other = isend(9, word, 4, mod(me + 1, n), 0)
      mid = msgmerge(mid, other)
      call msgwait(mid)
      call check(got .eq. 10 * mod(me + 2, n), 10)
      mid = isendrecv(10, word, 4, mod(me + 1, n), 0, 10, got, 4)
 100  if (msgdone(mid) .eq. 0) then
         call flick()
         goto 100
      end if
      call check(infotype() .eq. 10, 11)
      mid = irecv(11, got, 4)
      call msgcancel(mid)
      mid = irecv(11, got, 4)
      call msgignore(mid)
      call csend(11, word, 4, me, 0)

c     Selection by node, and information returned in an array.
      call gsync()
      call csend(12, word, 4, -1, 0)
      do 200 i = 1, n - 1
         other = mod(me + n - i, n)
         if (i .eq. 1) then
            call crecvx(12, got, 4, other, -1, info)
         else
            mid = irecvx(12, got, 4, other, 0, info)
            call msgwait(mid)
         end if
         call check(got .eq. 10 * other, 12)
         call check(info(1) .eq. 12 .and. info(2) .eq. 4, 13)
         call check(info(3) .eq. other .and. info(4) .eq. 0, 14)
 200  continue
      call csend(13, word, 4, me, 0)
      call cprobe(13)
      call check(iprobe(13) .eq. 1 .and. iprobe(14) .eq. 0, 15)
      call check(iprobex(13, me, 0, msginfo) .eq. 1, 16)
      call check(msginfo(1) .eq. 13 .and. infotype() .eq. 13, 17)
      call cprobex(13, me, 0, info)
      call crecvx(13, got, 4, me, 0, msginfo)
      call check(infonode() .eq. me .and. msginfo(3) .eq. me, 18)
      call csend(14, word, 4, me, 0)
      call flushmsg(14, -1, -1)
      call csend(FORCE_TYPE + 1, word, 4, me, 0)
      call check(iprobe(-1) .eq. 0, 19)
      call crecv(FORCE_TYPE + 1, got, 4)
      call gsync()
      list(1) = 1
      list(2) = 2
      if (me .eq. 0) then
         call gsendx(15, word, 4, list, 2)
      else
         call crecv(15, got, 4)
         call check(got .eq. 0, 20)
      end if

c     Global operations.
      do 300 i = 1, 3
         doubles(i) = me + i
         singles(i) = me + i
         ints(i) = me + i
 300  continue
      call gdsum(doubles, 3, dwork)
      call gssum(singles, 3, swork)
      call gisum(ints, 3, iwork)
      do 400 i = 1, 3
         call check(doubles(i) .eq. 3 * i + 3, 21)
         call check(singles(i) .eq. 3 * i + 3, 22)
         call check(ints(i) .eq. 3 * i + 3, 23)
         doubles(i) = me + 1
         singles(i) = me
         ints(i) = me + 1
 400  continue
      ints(4) = 77
      call gdprod(doubles, 3, dwork)
      call gshigh(singles, 3, swork)
      call giprod(ints, 3, iwork)
      call check(doubles(3) .eq. 6 .and. singles(3) .eq. 2, 24)
c     The element behind the vector must be unchanged.
      call check(ints(3) .eq. 6 .and. ints(4) .eq. 77, 25)
      doubles(1) = me
      singles(1) = me
      singles(2) = me + 1
      ints(1) = me
      call gdhigh(doubles, 1, dwork)
      call gslow(singles, 1, swork)
      call gsprod(singles(2), 1, swork)
      call gihigh(ints, 1, iwork)
      call check(doubles(1) .eq. 2 .and. singles(1) .eq. 0, 26)
      call check(singles(2) .eq. 6 .and. ints(1) .eq. 2, 27)
      doubles(1) = me
      ints(1) = me
      call gdlow(doubles, 1, dwork)
      call gilow(ints, 1, iwork)
      call check(doubles(1) .eq. 0 .and. ints(1) .eq. 0, 28)
      ints(1) = 2**me + 8
      ints(2) = 2**me
      ints(3) = 2**me
      call giand(ints(1), 1, iwork)
      call gior(ints(2), 1, iwork)
      call gixor(ints(3), 1, iwork)
      call check(ints(1) .eq. 8 .and. ints(2) .eq. 7, 29)
      call check(ints(3) .eq. 7, 30)
      ints(1) = me
      ints(2) = me
      ints(3) = 1
      call gland(ints(1), 1, iwork)
      call glor(ints(2), 1, iwork)
      call glxor(ints(3), 1, iwork)
      call check(ints(1) .eq. 0 .and. ints(2) .eq. 1, 31)
      call check(ints(3) .eq. 1, 32)
      do 500 i = 1, 3
         ints(i) = me
         lengths(i) = 4 * i
 500  continue
      call gcol(ints, 4 * (me + 1), all, 24, count)
      call check(count .eq. 24 .and. all(1) .eq. 0, 33)
      call check(all(2) .eq. 1 .and. all(4) .eq. 2, 34)
      all(6) = -1
      call gcolx(ints, lengths, all)
      call check(all(6) .eq. 2, 35)
      doubles(1) = me
      doubles(2) = -me
      call gopf(doubles, 16, dwork, widest)
      call check(doubles(1) .eq. 2 .and. doubles(2) .eq. -2, 36)

c     Handlers.
      calls = 0
      call check(masktrap(1) .eq. 0, 50)
      call hrecv(20, got, 4, note)
      call hsend(20, word, 4, me, 0, note)
      call hrecvx(21, got, 4, me, -1, noteown, 77)
      call hsendx(21, word, 4, me, 0, noteown, 78)
      call hsendrecv(22, word, 4, me, 0, 22, got, 4, note)
      call check(calls .eq. 0 .and. masktrap(0) .eq. 1, 51)
 600  if (calls .lt. 5) then
         call flick()
         goto 600
      end if
      call check(told(2) .eq. 4 .and. told(3) .eq. me, 52)
      call check(told(4) .eq. 0 .and. told(5) .eq. 155, 53)

c     Numbers, clocks, errors.
      call check(gray(5) .eq. 7 .and. ginv(7) .eq. 5, 37)
      first = mclock()
      last = mclock()
      t0 = dclock()
      call check(last .ge. first .and. dclock() .ge. t0, 38)
      call hwclock(list)
      call led(1)
      call check(_csend(1, word, 4, 55, 0) .eq. -1, 39)
      call check(_crecv(1, word, -4) .eq. -1, 40)
      call check(_msgwait(99) .eq. -1, 41)
      call check(_gisum(ints, -1, iwork) .eq. -1, 42)
      call check(_gcol(ints, 4, all, 24, count) .eq. 0, 43)
      call gsync()
      if (me .eq. 0) print *, 'all of it'
      end

      subroutine note(type, count, node, pid)
      integer type, count, node, pid, calls, told(5)
      common /heard/ calls, told
      told(1) = type
      told(2) = count
      told(3) = node
      told(4) = pid
      calls = calls + 1
      end

      subroutine noteown(type, count, node, pid, own)
      integer type, count, node, pid, own, calls, told(5)
      common /heard/ calls, told
      told(5) = told(5) + own
      call note(type, count, node, pid)
      end

      subroutine check(holds, which)
      logical holds
      integer which
      if (.not. holds) then
         print *, 'FAIL', which
         stop 3
      end if
      end

      integer function widest(a, b)
      double precision a(2), b(2)
      a(1) = max(a(1), b(1))
      a(2) = min(a(2), b(2))
      widest = 0
      end
