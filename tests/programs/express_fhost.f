c     A host program of Express and its nodes, with Fortran names: with an argument it is the host program.
      program fhost
      integer kxinit, kxpara, kxopen, kxload, kxstar, kxmain, kxclos
      integer kxread, kxwrit, kxbrod
      external kxinit, kxpara, kxopen, kxload, kxstar, kxmain, kxclos
      external kxread, kxwrit, kxbrod
      integer nocare, norder, nonode, ihost, ialnod, ialprc
      common /xpress/ nocare, norder, nonode, ihost, ialnod, ialprc
      integer nd(4), id, got, src, number, i
      character*400 name

      call need(kxinit() .eq. 0, 1)
      if (iargc() .eq. 0) then
         call need(kxpara(nd) .eq. 0, 2)
         call need(kxread(got, 4, ihost, 1) .eq. 4, 3)
         call need(got .eq. 10 * nd(1), 4)
         i = kxbrod(number, ihost, 4, ialnod, norder, 2)
         call need(i .eq. 4, 5)
         call need(kxwrit(number + nd(1), 4, nd(3), 3) .eq. 4, 6)
      else
         call getarg(0, name)
         id = kxopen('/dev/cube', 3, nocare)
         call need(id .ge. 0, 11)
         call need(kxload(id, '   ') .eq. -1, 12)
         call need(kxload(id, name) .eq. 0, 12)
         call need(kxstar(id, ialnod) .eq. 0, 13)
         call need(kxmain(id, ialnod) .eq. 0, 14)
         do 20 i = 0, 2
            call need(kxwrit(10 * i, 4, i, 1) .eq. 4, 15)
   20    continue
         number = 40
         i = kxbrod(number, ihost, 4, ialnod, norder, 2)
         call need(i .eq. 4, 16)
         do 30 i = 0, 2
            src = nocare
            call need(kxread(got, 4, src, 3) .eq. 4, 17)
            call need(got .eq. 40 + src, 18)
   30    continue
         call need(kxclos(id) .eq. 0, 19)
         print *, 'OK'
      end if
      end

      subroutine need(true, line)
      logical true
      integer line
      if (.not. true) then
         print *, 'FAIL', line
         stop 3
      end if
      end
