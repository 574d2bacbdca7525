c     An NX application in Fortran that forks onto its nodes.
      program nxapp
      include 'fnx.h'
      integer pids(3), list(4), n, i, started, rows, columns, word
      integer part(2), iwork
      data part /2, 0/

      call check(nx_waitall() .eq. -1, 1)
      call check(nx_mkpart('mine', 3, NX_STD) .eq. 3, 2)
      call check(nx_mkpart('mine', 3, NX_STD) .eq. -1, 3)
      call check(nx_mkpart_rect('grid', 1, 2, NX_GANG) .eq. 2, 4)
      call check(nx_mkpart_map('mine.two', 2, part, NX_STD) .eq. 2, 5)
      n = 4
      call check(nx_part_nodes('mine.two', list, n) .eq. 0, 6)
      call check(n .eq. 2 .and. list(1) .eq. 2 .and. list(2) .eq. 0, 7)
      call check(nx_chpart_epl('grid', 5) .eq. 0, 8)
      call check(nx_chpart_mod('grid', 493) .eq. 0, 9)
      call check(nx_chpart_rq('grid', 10) .eq. 0, 10)
      call check(nx_chpart_sched('grid', NX_SPS) .eq. 0, 11)
      call check(nx_chpart_owner('grid', 1, 2) .eq. 0, 12)
      call check(nx_chpart_name('grid', 'plane') .eq. 0, 13)
      call check(nx_rmpart('plane', 0, 0) .eq. 0, 14)
      call check(nx_initve('mine', 0, ' ', 1) .eq. 3, 15)
      call check(nx_initve_rect(' ', -1, 1, 3, ' ', 0) .eq. -1, 16)
      call check(nx_app_rect(rows, columns) .eq. 0, 17)
      call check(rows .eq. 1 .and. columns .eq. 3, 18)

      started = nx_nfork(list, -1, 0, pids)
      if (started .eq. 0) then
         word = mynode() + 1
         call gisum(word, 1, iwork)
         call check(word .eq. 6 .and. numnodes() .eq. 3, 19)
         call csend(5, word, 4, myhost(), 9)
c        Waits until the host has received all reports, because a process that has ended has no number any more.
         call crecv(6, word, 4)
         stop
      end if
      call check(started .eq. 3 .and. pids(1) .ne. pids(2), 20)
      call setptype(9)
      do 10 i = 1, 3
         call crecv(5, word, 4)
         call check(word .eq. 6, 21)
   10 continue
      call csend(6, word, 4, -1, 0)
      call check(nx_waitall() .eq. 0, 22)
      n = 1
      call check(nx_app_nodes(0, list, n) .eq. 0 .and. n .eq. 3, 23)
      n = 4
      call check(nx_empty_nodes(list, n) .eq. 0 .and. n .eq. 0, 24)
      call check(nx_failed_nodes(list, n) .eq. 0 .and. n .eq. 0, 25)
      call check(nx_pri(0, 5) .eq. 0 .and. nx_pri(0, 99) .eq. -1, 26)
      call nx_perror('nx_pri')
      i = nx_load(list, -1, 0, pids, '/no/such/program')
      call check(i .eq. -1, 27)
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
