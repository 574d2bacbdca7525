c     NX files from Fortran: units opened by gopen and by OPEN, in each mode, and 64-bit numbers. Three nodes; the
c     argument is a folder.
      program nxffil
      include 'fnx.h'
      integer me, n, i, id, word, words(3), all(3), stored
      integer at(2), there(2), five(2), big(2)
      character*200 folder
      character*8 line
      character*20 digits
      integer _cread, _cwrite, _gopen, _setiomode, _iomode, _eseek
      integer _lseek, _iread, _iodone, _etos, _stoe, _ediv
      external _cread, _cwrite, _gopen, _setiomode, _iomode, _eseek
      external _lseek, _iread, _iodone, _etos, _stoe, _ediv

      me = mynode()
      n = numnodes()
      call getarg(1, folder)
      i = index(folder, ' ') - 1
      call check(n .eq. 3 .and. i .gt. 0, 1)

c     Records of one length, in the order of the nodes.
      call gopen(10, folder(1:i)//'/records', M_RECORD)
      call check(iomode(10) .eq. M_RECORD, 2)
      word = 10 * me
      call cwrite(10, word, 4)
      word = word + 1
      call cwrite(10, word, 4)
      call gsync()
      call check(lsize(10, 0, SIZE_SET) .eq. 24, 3)
      call check(lseek(10, 12, SEEK_SET) .eq. 12, 4)
      call cread(10, word, 4)
      call check(word .eq. 10 * me + 1, 5)
      call check(iseof(10) .eq. 1 .and. _iomode(10) .eq. M_RECORD, 6)

c     All nodes make the same call; then each has its own position.
      at(1) = 4
      at(2) = 0
      call eseek(10, at, SEEK_SET, there)
      call check(there(1) .eq. 4 .and. there(2) .eq. 0, 7)
      call setiomode(10, M_GLOBAL)
      call cread(10, word, 4)
      call check(word .eq. 10, 8)
      call setiomode(10, M_UNIX)
      call check(lseek(10, 4 * me, SEEK_SET) .eq. 4 * me, 9)
      id = iread(10, word, 4)
      call iowait(id)
      call check(word .eq. 10 * me, 10)
      call check(lseek(10, 100 + 4 * me, SEEK_SET) .gt. 0, 11)
      id = iwrite(10, me, 4)
      call check(iodone(id) .eq. 1, 12)
      call gsync()
      call check(_lseek(10, 0, SEEK_END) .eq. 112, 13)
      call check(_cread(10, word, 4) .eq. -1, 14)
      call restrictvol(10, 0, all)

c     A long file: the lower half of an offset is unsigned.
      at(1) = -1294967296
      at(2) = 0
      call gsync()
      call esize(10, at, SIZE_SET, there)
      call check(there(1) .eq. at(1) .and. there(2) .eq. 0, 15)
      call eseek(10, at, SEEK_SET, there)
      call check(there(1) .eq. at(1) .and. there(2) .eq. 0, 16)
      call etos(there, digits)
      call check(digits .eq. '3000000000', 17)

c     The next gopen of a unit opens another file.
      call gopen(10, folder(1:i)//'/ordered', M_SYNC)
      call cwrite(10, 'abcdef', me + 1)
      call gsync()
      call check(lsize(10, 0, SIZE_SET) .eq. 6, 18)
      call check(lseek(10, 0, SEEK_SET) .eq. 0, 19)
      line = ' '
      call cread(10, line, me + 1)
      call check(line .eq. 'abcdef'(1:me + 1), 20)

c     A unit opened by OPEN can be used by both.
      if (me .eq. 0) then
         open(11, file=folder(1:i)//'/both', status='new')
         write(11, '(a)') 'by WRITE'
         call cwrite(11, 'by cwrite', 9)
         call check(lsize(11, 0, SIZE_SET) .eq. 18, 21)
         close(11)
         open(11, file=folder(1:i)//'/both', access='stream',
     1        form='unformatted', status='old')
         call check(lseek(11, 9, SEEK_SET) .eq. 9, 22)
         call cread(11, line, 8)
         call check(line .eq. 'by cwrit', 23)
         close(11)
         call check(_cread(11, line, 8) .eq. -1, 24)
      end if
      call gsync()
      open(12, file=folder(1:i)//'/log', form='unformatted',
     1     access='stream')
      call setiomode(12, M_LOG)
      call cwrite(12, me + 1, 4)
      call gsync()
      call setiomode(12, M_UNIX)
      call check(lseek(12, 0, SEEK_SET) .eq. 0, 25)
      call cread(12, all, 12)
      stored = all(1) + all(2) + all(3)
      call check(stored .eq. 6, 26)
      close(12)

c     Errors that all nodes get.
      call check(_gopen(13, '/no/such/folder/f', M_UNIX) .eq. -1, 27)
      call check(_gopen(13, folder(1:i)//'/f', 9) .eq. -1, 28)
      call check(_gopen(6, folder(1:i)//'/f', 0) .eq. -1, 29)
      call check(_setiomode(99, M_LOG) .eq. -1, 30)
      call check(_iomode(99) .eq. -1, 31)
      call check(_cwrite(99, word, 4) .eq. -1, 32)
      call check(_cwrite(10, word, -4) .eq. -1, 33)
      call check(_iread(99, word, 4) .ge. 0, 34)
      call check(_iodone(77) .eq. -1, 35)
      call check(_eseek(99, at, SEEK_SET, there) .eq. -1, 36)

c     Arithmetic.
      five(1) = 5
      five(2) = 0
      call stoe(' 12345678901 ', big)
      call eadd(big, five, there)
      call etos(there, digits)
      call check(digits .eq. '12345678906', 37)
      call esub(five, big, there)
      call etos(there, digits)
      call check(digits .eq. '-12345678896', 38)
      call emul(big, 10, there)
      call check(ediv(there, 1000) .eq. 123456789, 39)
      call check(emod(big, 1000) .eq. 901, 40)
      call check(ecmp(big, five) .eq. 1, 41)
      call check(ecmp(five, big) .eq. -1, 42)
      call check(ecmp(big, big) .eq. 0, 43)
      call check(_stoe('no number', big) .eq. -1, 44)
      call check(_etos(big, digits(1:3)) .eq. -1, 45)
      call check(_ediv(big, 0) .eq. -1, 46)
      call gsync()
      if (me .eq. 0) print *, 'all of it'
      end

      subroutine check(holds, which)
      logical holds
      integer which
      if (.not. holds) then
         print *, 'FAIL', which
         stop 3
      end if
      end
