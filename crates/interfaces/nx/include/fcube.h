! fcube.h: the name under which programs of the iPSC find fnx.h.
      INCLUDE 'fnx.h'
