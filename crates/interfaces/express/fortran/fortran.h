/* Routines with two names: one of six letters, as the Fortran standard requires, and the longer one that the paper of
 * 1991 prints. */
#ifndef REGATTA_EXPRESS_FORTRAN_H
#define REGATTA_EXPRESS_FORTRAN_H

/* COMMON /XPRESS/ NOCARE, NORDER, NONODE, IHOST, IALNOD, IALPRC of the program. NORDER is passed where the list of nodes is not used. */
extern int xpress_[6];

#define ALSO(name, routine) extern __typeof__(routine) name __attribute__((alias(#routine)))

#endif
