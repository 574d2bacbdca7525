c     Bodies that attract each other, on PVM.
      program main
      use bodies, only: nbody
      integer rank, size, status
      call join(rank, size)
      status = nbody(rank, size)
      call leave()
      call exit(status)
      end

      subroutine sum_of_all(values, count)
      integer count
      double precision values(count)
      external pvmsum
      call reduce_to_all(pvmsum, values, count)
      end

c     A send of PVM does not wait for its receive.
      subroutine pass_on(values, count, coming, room)
      integer count, room
      integer tids(0:255), mine, known
      common /tasks/ tids, mine, known
      double precision values(count), coming(room)
      call send_to(mod(mine + 1, known), 5, values, count)
      call receive_from(mod(mine + known - 1, known), 5, coming, room)
      end
