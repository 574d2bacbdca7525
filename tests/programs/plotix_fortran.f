c     Plotix by its Fortran names: those of BSD with integers, and those of Express with reals. Each node draws a part
c     of both pictures. Prints OK, or the line of the check that failed.
      program plotix
      integer kxinit, kxpara, openpl, clospl, erase, space, linemd
      integer move, cont, line, box, point, circle, arc, label
      integer kopenp, kclosp, kerase, ksendp, kpfile, kspace, klinmd
      integer kmove, kcont, kline, kbox, kpoint, kcircl, karc, klabel
      external kxinit, kxpara, openpl, clospl, erase, space, linemd
      external move, cont, line, box, point, circle, arc, label
      external kopenp, kclosp, kerase, ksendp, kpfile, kspace, klinmd
      external kmove, kcont, kline, kbox, kpoint, kcircl, karc, klabel
      integer nd(4), me
      real x
      character*200 folder

      if (kxinit() .ne. 0) stop 1
      call need(kxpara(nd) .eq. 0, 2)
      me = nd(1)
      call getarg(1, folder)

      call need(kpfile(trim(folder)//'/integers.svg') .eq. 0, 10)
      call need(openpl() .eq. 0, 11)
      call need(erase() .eq. 0, 12)
      call need(space(0, 0, 100, 100) .eq. 0, 13)
      call need(linemd('dotted  ') .eq. 0, 14)
      call need(move(10, 10*me) .eq. 0, 15)
      call need(cont(20, 10*me) .eq. 0, 16)
      call need(line(30, 10*me, 40, 10*me) .eq. 0, 17)
      call need(box(50, 10*me, 55, 10*me + 5) .eq. 0, 18)
      call need(point(60, 10*me) .eq. 0, 19)
      call need(circle(70, 10*me, 2) .eq. 0, 20)
      call need(arc(80, 10*me, 82, 10*me, 80, 10*me + 2) .eq. 0, 21)
      call need(label('integers  ') .eq. 0, 22)
      call need(clospl() .eq. 0, 23)

      x = 0.1 * me
      call need(kpfile(trim(folder)//'/reals.svg') .eq. 0, 30)
      call need(kopenp() .eq. 0, 31)
      call need(kerase() .eq. 0, 32)
      call need(kspace(0.0, 0.0, 1.0, 1.0) .eq. 0, 33)
      call need(klinmd('solid') .eq. 0, 34)
      call need(kmove(0.1, x) .eq. 0, 35)
      call need(kcont(0.2, x) .eq. 0, 36)
      call need(ksendp() .eq. 0, 37)
      call need(kline(0.3, x, 0.4, x) .eq. 0, 38)
      call need(kbox(0.5, x, 0.55, x + 0.05) .eq. 0, 39)
      call need(kpoint(0.6, x) .eq. 0, 40)
      call need(kcircl(0.7, x, 0.02) .eq. 0, 41)
      call need(karc(0.8, x, 0.82, x, 0.8, x + 0.02) .eq. 0, 42)
      call need(klabel('reals') .eq. 0, 43)
      call need(kclosp() .eq. 0, 44)
      call need(kline(0.0, 0.0, 1.0, 1.0) .eq. -1, 45)
      if (me .eq. 0) print *, 'OK'
      end

      subroutine need(true, line)
      logical true
      integer line
      if (.not. true) then
         print *, 'FAIL', line
         stop 3
      end if
      end
