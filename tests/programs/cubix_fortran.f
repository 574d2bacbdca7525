c     Fortran units in the modes of Cubix: FILES writes files into the folder that is the second argument, TERMINAL
c     writes to the terminal. Prints where a check failed.
      program cubix
      integer kxinit, kxpara, kxsync
      external kxinit, kxpara, kxsync
      integer nd(4), me, n
      character*200 scenar, folder

      if (kxinit() .ne. 0) stop 1
      call need(kxpara(nd) .eq. 0, 2)
      me = nd(1)
      n = nd(2)
      call getarg(1, scenar)
      call getarg(2, folder)
      if (scenar .eq. 'terminal') then
         call term(me)
      else
         call lines(trim(folder)//'/lines', me, n)
         call record(trim(folder)//'/records', me)
         call places(trim(folder)//'/places', me, n)
         call wrong(me, n)
      end if
      end

c     One copy, then parts in the order of the nodes, then one copy again; then the unit is opened for another file.
      subroutine lines(path, me, n)
      character*(*) path
      integer me, n, i, ksingl, kmulti, kflush
      external ksingl, kmulti, kflush
      open (unit=10, file=path, status='replace')
      call need(ksingl(10) .eq. 0, 10)
      write (10, '(a)') 'head'
      call need(kflush(10) .eq. 0, 11)
      write (10, '(a)') 'more'
      call need(kmulti(10) .eq. 0, 12)
      do 20 i = 0, me
         write (10, '(i2, a, i2)') me, '.', i
   20 continue
      call need(kflush(10) .eq. 0, 13)
      if (me .eq. n - 1) write (10, '(a)') 'last'
      call need(ksingl(10) .eq. 0, 14)
      write (10, '(a)') 'tail'
      call need(kmulti(10) .eq. 0, 15)
      write (10, '(i2)') me
c     Without a flush: the next call writes the data to the file.
      close (10)
      open (unit=10, file=path//'-2', status='replace')
      call need(kmulti(10) .eq. 0, 16)
      write (10, '(i2)') 10 + me
c     No flush here either: the data is written at the end of the program.
      close (10)
      end

c     Unformatted records.
      subroutine record(path, me)
      character*(*) path
      integer me, kmulti, kflush
      external kmulti, kflush
      open (unit=11, file=path, form='unformatted', status='replace')
      call need(kmulti(11) .eq. 0, 20)
      write (11) me, me + 1
      write (11) me
      call need(kflush(11) .eq. 0, 21)
      close (11)
      end

c     Each node writes at its own position. (gfortran truncates a text file behind the line that is written.)
      subroutine places(path, me, n)
      character*(*) path
      character*9 word
      integer me, n, i, ksingl, kasync, kxsync
      external ksingl, kasync, kxsync
      open (unit=12, file=path, access='stream', status='replace')
      call need(ksingl(12) .eq. 0, 30)
      word = 'nothing.'//char(10)
      do 40 i = 1, n
         write (12) word
   40 continue
      call need(kasync(12) .eq. 0, 31)
      write (word, '(i8, a)') 100 + me, char(10)
      write (12, pos=9*me + 1) word
      close (12)
      call need(kxsync() .eq. 0, 32)
      end

      subroutine wrong(me, n)
      integer me, n
      integer ksingl, kmulti, kasync, kflush
      external ksingl, kmulti, kasync, kflush
      call need(kmulti(77) .eq. -1, 50)
      call need(ksingl(77) .eq. -1, 51)
      call need(kasync(77) .eq. -1, 52)
      call need(kflush(77) .eq. -1, 53)
      if (me .eq. 0) open (unit=78, status='scratch')
      if (n .gt. 1) call need(kmulti(78) .eq. -1, 54)
      end

      subroutine term(me)
      integer me, ksingl, kmulti
      external ksingl, kmulti
      call need(ksingl(6) .eq. 0, 60)
      write (6, '(a)') 'once'
      call need(kmulti(6) .eq. 0, 61)
      write (6, '(a, i2)') 'node', me
      call need(ksingl(6) .eq. 0, 62)
      write (6, '(a)') 'again'
      call need(kmulti(6) .eq. 0, 63)
      write (6, '(a, i2)') 'end', me
      end

      subroutine need(true, line)
      logical true
      integer line
      if (.not. true) then
         write (0, *) 'FAIL', line
         stop 3
      end if
      end
