c     Messages, groups and the machine from Fortran. The output is compared with that on PVM's own libraries.
      program pvmfor
      include 'fpvm3.h'
      integer tid, bufid, info, n, inum, bytes, tag, from, old
      integer nhost, narch, dtid, speed, i
      integer numbers(4), got(4)
      integer*8 large, had
      double precision reals(3), were(3)
      character*12 text, told
      character*20 host, arch
      external pvmsum
      data numbers /1, 2, 3, 4/, reals /1.5d0, 2.5d0, 3.5d0/

      call pvmfmytid(tid)
      print *, 'task', tid .gt. 0
      call pvmfsetopt(PVMAUTOERR, 0, old)
      print *, 'was', old
      large = 77
      text = 'twelve chars'
      call pvmfinitsend(PVMDEFAULT, bufid)
      call pvmfpack(INTEGER4, numbers, 2, 2, info)
      print *, 'pack', info
      call pvmfpack(REAL8, reals, 3, 1, info)
      call pvmfpack(STRING, text, 12, 1, info)
      call pvmfpack(INTEGER8, large, 1, 1, info)
      call pvmfpack(99, numbers, 1, 1, info)
      print *, 'bad type', info
      call pvmfsend(tid, 7, info)
      print *, 'send', info
      call pvmfrecv(-1, 7, bufid)
      call pvmfbufinfo(bufid, bytes, tag, from, info)
      print *, 'came', bytes, tag, from .eq. tid, info
      call pvmfunpack(INTEGER4, got, 2, 1, info)
      print *, got(1), got(2)
      call pvmfunpack(REAL8, were, 3, 1, info)
      print '(3f6.2)', were
      call pvmfunpack(STRING, told, 12, 1, info)
      print *, told
      call pvmfunpack(INTEGER8, had, 1, 1, info)
      print *, had, info
      call pvmfunpack(INTEGER4, got, 1, 1, info)
      print *, 'end', info
      call pvmfpsend(tid, 8, reals, 3, REAL8, info)
      call pvmfprecv(tid, 8, were, 3, REAL8, from, tag, bytes, info)
      print *, 'psend', info, tag, bytes
      call pvmfnrecv(-1, 9, bufid)
      print *, 'nothing', bufid
      call pvmftrecv(-1, 9, 0, 1000, bufid)
      print *, 'nothing', bufid
      call pvmfjoingroup('fortran  ', inum)
      print *, 'instance', inum
      call pvmfgsize('fortran', n)
      print *, 'size', n
      call pvmfbarrier('fortran', 1, info)
      print *, 'barrier', info
      call pvmfreduce(pvmsum, reals, 3, REAL8, 3, 'fortran', 0, info)
      print *, 'reduce', info
      call pvmfgetinst('fortran', tid, inum)
      print *, 'again', inum
      call pvmflvgroup('fortran', info)
      print *, 'left', info
      call pvmfgsize('fortran', n)
      print *, 'size', n
      call pvmfconfig(nhost, narch, dtid, host, arch, speed, info)
      print *, 'hosts', nhost, narch, info
      do 10 i = 1, 2
      call pvmfgetopt(PVMROUTE, n)
   10 continue
      call pvmfexit(info)
      print *, 'exit', info
      end
