c     Bodies that attract each other, on NX.
      program main
      use bodies, only: nbody
      include 'fnx.h'
      call exit(nbody(mynode(), numnodes()))
      end

c     NX wants a second vector of the same length to work in.
      subroutine sum_of_all(values, count)
      integer count
      double precision values(count), work(count)
      call gdsum(values, count, work)
      end

      subroutine pass_on(values, count, coming, room)
      include 'fnx.h'
      integer count, room, came
      double precision values(count), coming(room)
      came = csendrecv(2000, values, 8 * count,
     &   mod(mynode() + 1, numnodes()), 0, 2000, coming, 8 * room)
      end
