/* Buffers, packing, sending and receiving, contexts and message handlers. */
#include <stddef.h>

#include <pvm3.h>

enum { BAD_PARAM = -2 };

void pvmfmkbuf_(int *encoding, int *bufid) { *bufid = pvm_mkbuf(*encoding); }
void pvmfinitsend_(int *encoding, int *bufid) { *bufid = pvm_initsend(*encoding); }
void pvmffreebuf_(int *bufid, int *info) { *info = pvm_freebuf(*bufid); }
void pvmfgetsbuf_(int *bufid) { *bufid = pvm_getsbuf(); }
void pvmfgetrbuf_(int *bufid) { *bufid = pvm_getrbuf(); }
void pvmfsetsbuf_(int *bufid, int *before) { *before = pvm_setsbuf(*bufid); }
void pvmfsetrbuf_(int *bufid, int *before) { *before = pvm_setrbuf(*bufid); }

void pvmfbufinfo_(int *bufid, int *bytes, int *tag, int *tid, int *info)
{
    *info = pvm_bufinfo(*bufid, bytes, tag, tid);
}

/* PVM 3.4 has no Fortran form of these three except in the manual. */
void pvmfpkmesg_(int *bufid, int *info) { *info = pvm_pkmesg(*bufid); }
void pvmfpkmesgbody_(int *bufid, int *info) { *info = pvm_pkmesgbody(*bufid); }
void pvmfupkmesg_(int *bufid) { *bufid = pvm_upkmesg(); }

/* Dispatches on the item types of fpvm3.h. STRING is packed as bytes; the program itself transmits the length. */
#define BY_KIND(call)                                 \
    switch (*what) {                                  \
    case 0: /* STRING */                              \
    case 1: *info = call##byte(items, *count, *stride); break;   \
    case 2: *info = call##short(items, *count, *stride); break;  \
    case 3: *info = call##int(items, *count, *stride); break;    \
    case 4: *info = call##float(items, *count, *stride); break;  \
    case 5: *info = call##cplx(items, *count, *stride); break;   \
    case 6: *info = call##double(items, *count, *stride); break; \
    case 7: *info = call##dcplx(items, *count, *stride); break;  \
    case 8: *info = call##long(items, *count, *stride); break;   \
    default: *info = BAD_PARAM;                       \
    }

void pvmfpack_(int *what, void *items, int *count, int *stride, int *info) { BY_KIND(pvm_pk) }
void pvmfunpack_(int *what, void *items, int *count, int *stride, int *info) { BY_KIND(pvm_upk) }

void pvmfsend_(int *tid, int *tag, int *info) { *info = pvm_send(*tid, *tag); }
void pvmfmcast_(int *ntask, int *tids, int *tag, int *info) { *info = pvm_mcast(tids, *ntask, *tag); }

void pvmfpsend_(int *tid, int *tag, void *data, int *count, int *type, int *info)
{
    *info = pvm_psend(*tid, *tag, data, *count, *type);
}

void pvmfrecv_(int *tid, int *tag, int *bufid) { *bufid = pvm_recv(*tid, *tag); }
void pvmfnrecv_(int *tid, int *tag, int *bufid) { *bufid = pvm_nrecv(*tid, *tag); }
void pvmfprobe_(int *tid, int *tag, int *bufid) { *bufid = pvm_probe(*tid, *tag); }

/* *seconds == -1 waits without a limit. */
void pvmftrecv_(int *tid, int *tag, int *seconds, int *microseconds, int *bufid)
{
    struct timeval timeout;

    timeout.tv_sec = *seconds;
    timeout.tv_usec = *microseconds;
    *bufid = pvm_trecv(*tid, *tag, *seconds == -1 ? NULL : &timeout);
}

void pvmfprecv_(int *tid, int *tag, void *data, int *count, int *type, int *from, int *as, int *length, int *info)
{
    *info = pvm_precv(*tid, *tag, data, *count, *type, from, as, length);
}

void pvmfnewcontext_(int *context) { *context = pvm_newcontext(); }
void pvmfgetcontext_(int *context) { *context = pvm_getcontext(); }
void pvmfsetcontext_(int *context, int *before) { *before = pvm_setcontext(*context); }
void pvmffreecontext_(int *context, int *info) { *info = pvm_freecontext(*context); }

void pvmfaddmhf_(int *tid, int *tag, int *context, int (*handler)(int), int *id)
{
    *id = pvm_addmhf(*tid, *tag, *context, handler);
}

void pvmfdelmhf_(int *id, int *info) { *info = pvm_delmhf(*id); }
