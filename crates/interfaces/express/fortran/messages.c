/* Messages: blocks, scattered items, nonblocking operations. */
#include <express.h>

#include "fortran.h"

/* Returns the address that a read may write to. A program that passes NOCARE itself must not have it changed, so NULL
 * is used instead. */
static int *told(int *number) { return number == xpress_ && *number == DONTCARE ? NULLPTR : number; }

int kxread_(void *buf, int *length, int *src, int *type) { return exread(buf, *length, told(src), told(type)); }

int kxwrit_(void *buf, int *length, int *dest, int *type) { return exwrite(buf, *length, dest, type); }
ALSO(kxwrite_, kxwrit_);

int kxchan_(void *ibuf, int *ilen, int *src, int *itype, void *obuf, int *olen, int *dest, int *otype)
{
    return exchange(ibuf, *ilen, told(src), told(itype), obuf, *olen, dest, otype);
}

int kxtest_(int *src, int *type) { return extest(told(src), told(type)); }
int kxprob_(int *src, int *type) { return exprobe(told(src), told(type)); }

int kxvrea_(void *buf, int *size, int *offset, int *items, int *src, int *type)
{
    return exvread(buf, *size, *offset, *items, told(src), told(type));
}
ALSO(kxvread_, kxvrea_);

int kxvwri_(void *buf, int *size, int *offset, int *items, int *dest, int *type)
{
    return exvwrite(buf, *size, *offset, *items, dest, type);
}
ALSO(kxvwrit_, kxvwri_);

int kxvcha_(void *ibuf, int *isize, int *ioffset, int *iitems, int *src, int *itype, void *obuf, int *osize, int *ooffset,
            int *oitems, int *dest, int *otype)
{
    return exvchange(ibuf, *isize, *ioffset, *iitems, told(src), told(itype), obuf, *osize, *ooffset, *oitems, dest, otype);
}
ALSO(kxvchan_, kxvcha_);

int kxsend_(void *buf, int *length, int *dest, int *type, int *status) { return exsend(buf, *length, dest, type, status); }
int kxrecv_(void *buf, int *length, int *src, int *type, int *status) { return exreceive(buf, *length, told(src), told(type), status); }
int kxwait_(int *status) { return exwait(status); }
