/* Plotix for Fortran, with two sets of names: those of BSD's library for plot(3), whose coordinates are INTEGERs, and
 * those in the style of Express, whose coordinates are REALs. A Fortran string is padded with blanks and not
 * NUL-terminated; its length is passed after all other arguments. */
#include <plotix.h>

#include <string.h>

enum { MAX_TEXT_BYTES = 1024 };

/* Calls a function with a Fortran string. */
static int with(int (*function)(const char *), const char *text, size_t length)
{
    char ended[MAX_TEXT_BYTES + 1];

    while (length > 0 && text[length - 1] == ' ')
        length--;
    if (length > MAX_TEXT_BYTES)
        length = MAX_TEXT_BYTES;
    memcpy(ended, text, length);
    ended[length] = 0;
    return function(ended);
}

int openpl_(void) { return openpl(); }
int clospl_(void) { return closepl(); }
int erase_(void) { return erase(); }
int space_(int *x0, int *y0, int *x1, int *y1) { return space(*x0, *y0, *x1, *y1); }
int linemd_(char *style, size_t length) { return with(linemod, style, length); }
int move_(int *x, int *y) { return move(*x, *y); }
int cont_(int *x, int *y) { return cont(*x, *y); }
int line_(int *x0, int *y0, int *x1, int *y1) { return line(*x0, *y0, *x1, *y1); }
int box_(int *x0, int *y0, int *x1, int *y1) { return box(*x0, *y0, *x1, *y1); }
int point_(int *x, int *y) { return point(*x, *y); }
int circle_(int *x, int *y, int *radius) { return circle(*x, *y, *radius); }
int arc_(int *x, int *y, int *x0, int *y0, int *x1, int *y1) { return arc(*x, *y, *x0, *y0, *x1, *y1); }
int label_(char *text, size_t length) { return with(label, text, length); }

int kopenp_(void) { return openpl(); }
int kclosp_(void) { return closepl(); }
int kerase_(void) { return erase(); }
int ksendp_(void) { return sendplot(); }
int kpfile_(char *name, size_t length) { return with(plotfile, name, length); }
int kspace_(float *x0, float *y0, float *x1, float *y1) { return space(*x0, *y0, *x1, *y1); }
int klinmd_(char *style, size_t length) { return with(linemod, style, length); }
int kmove_(float *x, float *y) { return move(*x, *y); }
int kcont_(float *x, float *y) { return cont(*x, *y); }
int kline_(float *x0, float *y0, float *x1, float *y1) { return line(*x0, *y0, *x1, *y1); }
int kbox_(float *x0, float *y0, float *x1, float *y1) { return box(*x0, *y0, *x1, *y1); }
int kpoint_(float *x, float *y) { return point(*x, *y); }
int kcircl_(float *x, float *y, float *radius) { return circle(*x, *y, *radius); }
int karc_(float *x, float *y, float *x0, float *y0, float *x1, float *y1) { return arc(*x, *y, *x0, *y0, *x1, *y1); }
int klabel_(char *text, size_t length) { return with(label, text, length); }
