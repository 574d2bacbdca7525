c     An NX host program in Fortran. The nodes run nx_node.c, whose long has 64 bits, from the folder that is the
c     argument.
      program nxhost
      include 'fcube.h'
      character*400 folder
      integer*8 order(2), value
      integer i, node, pid, code
      integer _load, _setpid, _getcube, _relcube, _attachcube
      integer _killcube, _killproc, _waitall, _waitone
      external _load, _setpid, _getcube, _relcube, _attachcube
      external _killcube, _killproc, _waitall, _waitone

      call getarg(1, folder)
      call check(_load('node', -1, 0) .eq. -1, 1)
      call getcube('mine', 'd1', ' ', 0)
      call setpid(100)
      call check(_setpid(100) .eq. -1 .and. mynode() .eq. 2, 2)
      call check(_load('/no/such/program', -1, 0) .eq. -1, 3)
      call killcube(-1, 0)
      i = load(folder(1:len_trim(folder)) // '/nx_node', -1, 0)
      call check(i .eq. 0, 4)
      call check(_getcube('mine', '2', ' ', 0) .eq. -1, 5)
      call check(_attachcube('mine') .eq. 0, 6)
      call check(_attachcube('other') .eq. -1, 7)
      call attachcube('mine')
      order(1) = ichar('s')
      order(2) = 0
      call csend(1, order, 16, -1, 0)
      do 100 i = 1, numnodes()
         call crecv(2, value, 8)
         call check(value .eq. 3 .and. infopid() .eq. 0, 8)
 100  continue
      order(1) = ichar('x')
      order(2) = 6
      call csend(1, order, 16, 1, 0)
      call waitone(-1, -1, node, pid, code)
      call check(node .eq. 1 .and. pid .eq. 0 .and. code .eq. 6, 9)
      call check(_killproc(1, 0) .eq. 0, 10)
      call csend(1, order, 16, 0, 0)
      call check(_waitone(0, 0, node, pid, code) .eq. 0, 11)
      call check(node .eq. 0 .and. code .eq. 6, 12)
      call waitall(-1, -1)
      call check(_waitall(-1, -1) .eq. 0, 13)
      call check(_waitone(-1, -1, node, pid, code) .eq. -1, 14)
      call killproc(0, 0)
      call check(_killcube(-1, -1) .eq. 0, 15)
      call relcube('mine')
      call check(_relcube('other') .eq. -1, 16)
      print *, 'all of it'
      end

      subroutine check(holds, which)
      logical holds
      integer which
      if (.not. holds) then
         print *, 'FAIL', which
         stop 3
      end if
      end
