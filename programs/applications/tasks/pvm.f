c     How the applications in Fortran join and send, on PVM 3.4: what pvm.h is for those in C.
c
c     The program is started once, by hand, with the number of tasks as its last argument; it starts the others, which have no
c     arguments of their own in Fortran: they are told. All join a group, in which the number of a task is its rank.
      subroutine check(code, name)
      integer code
      character*(*) name
      if (code .lt. 0) then
         write (0, *) 'application: ', name, ' failed: error ', code
         call exit(1)
      end if
      end

      subroutine join(rank, size)
      use clock, only: have_words, MAX_WORDS, WORD_LENGTH
      include 'fpvm3.h'
      integer rank, size, parent, mytid, info, old, number, i
      integer tids(0:255), mine, known
      common /tasks/ tids, mine, known
      character*(WORD_LENGTH) words(MAX_WORDS)
      double precision turn(1)
      call pvmfmytid(mytid)
      call check(mytid, 'pvmfmytid')
      call pvmfsetopt(PVMROUTE, PVMROUTEDIRECT, old)
      call pvmfparent(parent)
      if (parent .gt. 0) then
         call pvmfrecv(parent, 1, info)
         call check(info, 'pvmfrecv')
         call pvmfunpack(INTEGER4, size, 1, 1, info)
         call pvmfunpack(INTEGER4, tids, size, 1, info)
         do 10 i = 1, MAX_WORDS
            call pvmfunpack(STRING, words(i), WORD_LENGTH, 1, info)
   10    continue
         call have_words(words)
      else
         call start_others(mytid, size)
      end if
      rank = 0
   20 if (tids(rank) .ne. mytid) then
         rank = rank + 1
         goto 20
      end if
      mine = rank
      known = size
c     In turn, so that numbers in the group are ranks.
      turn = 0
      if (rank .gt. 0) call receive_from(rank - 1, 2, turn, 1)
      call pvmfjoingroup('application', number)
      call check(number, 'pvmfjoingroup')
      if (rank + 1 .lt. size) call send_to(rank + 1, 2, turn, 1)
      call pvmffreezegroup('application', size, info)
      call check(info, 'pvmffreezegroup')
      end

c     Starts the other tasks and tells them who is who, and the arguments.
      subroutine start_others(mytid, size)
      use clock, only: argument, number, MAX_WORDS, WORD_LENGTH
      include 'fpvm3.h'
      integer mytid, size, info, started, i
      integer tids(0:255), mine, known
      common /tasks/ tids, mine, known
      character*4096 program
      character*(WORD_LENGTH) word
      size = number(command_argument_count(), 0)
      if (size .lt. 1 .or. size .gt. 256) then
         write (0, *) 'application: the last argument is the number ',
     &      'of tasks, 1 to 256'
         call exit(2)
      end if
      tids(0) = mytid
      if (size .eq. 1) return
      call get_command_argument(0, program)
      call pvmfspawn(program, PVMTASKDEFAULT, '*', size - 1, tids(1),
     &   started)
      if (started .ne. size - 1) then
         write (0, *) 'application: PVM could not start', size - 1,
     &      ' tasks'
         call exit(1)
      end if
      call pvmfinitsend(PVMDATADEFAULT, info)
      call pvmfpack(INTEGER4, size, 1, 1, info)
      call pvmfpack(INTEGER4, tids, size, 1, info)
      do 10 i = 1, MAX_WORDS
         word = argument(i)
         call pvmfpack(STRING, word, WORD_LENGTH, 1, info)
   10 continue
      call pvmfmcast(size - 1, tids(1), 1, info)
      call check(info, 'pvmfmcast')
      end

      subroutine leave()
      integer info
      integer tids(0:255), mine, known
      common /tasks/ tids, mine, known
      call pvmfbarrier('application', known, info)
      call check(info, 'pvmfbarrier')
      call pvmflvgroup('application', info)
      call pvmfexit(info)
      end

      subroutine send_to(task, tag, values, count)
      include 'fpvm3.h'
      integer task, tag, count, info
      integer tids(0:255), mine, known
      common /tasks/ tids, mine, known
      double precision values(count)
      call pvmfpsend(tids(task), tag, values, count, REAL8, info)
      call check(info, 'pvmfpsend')
      end

      subroutine receive_from(task, tag, values, count)
      include 'fpvm3.h'
      integer task, tag, count, info, tid, its, length
      integer tids(0:255), mine, known
      common /tasks/ tids, mine, known
      double precision values(count)
      call pvmfprecv(tids(task), tag, values, count, REAL8, tid, its,
     &   length, info)
      call check(info, 'pvmfprecv')
      end

c     A broadcast of PVM does not go to its sender, and a group of one has nobody for it.
      subroutine broadcast(values, count, from)
      include 'fpvm3.h'
      integer count, from, info
      integer tids(0:255), mine, known
      common /tasks/ tids, mine, known
      double precision values(count)
      if (known .eq. 1) return
      if (mine .eq. from) then
         call pvmfinitsend(PVMDATARAW, info)
         call pvmfpack(REAL8, values, count, 1, info)
         call pvmfbcast('application', 3, info)
         call check(info, 'pvmfbcast')
      else
         call receive_from(from, 3, values, count)
      end if
      end

c     PVM has no reduction whose result all get: it is a reduction to task 0 and a broadcast.
      subroutine reduce_to_all(operation, values, count)
      include 'fpvm3.h'
      external operation
      integer count, info
      integer tids(0:255), mine, known
      common /tasks/ tids, mine, known
      double precision values(count)
      if (known .eq. 1) return
      call pvmfreduce(operation, values, count, REAL8, 4,
     &   'application', 0, info)
      call check(info, 'pvmfreduce')
      call broadcast(values, count, 0)
      end
