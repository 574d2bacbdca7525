/* The buffers that a task keeps, and calls with invalid arguments. */
#ifndef PVM_COURSE_ODD_H
#define PVM_COURSE_ODD_H

#include <stdint.h>

int keep(int buffer);     /* remembers a buffer; returns 0 if there is no room */
void forget(int buffer);  /* it has been freed */
void forget_received(void); /* the next call will free the receive buffer */
void forget_all(void);    /* frees all kept buffers */
void local_calls(uint64_t seed);
void odd_call(uint64_t seed);

#endif
