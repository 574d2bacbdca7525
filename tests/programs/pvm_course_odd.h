/* The buffers that a task keeps beside, and calls whose arguments make no sense. */
#ifndef PVM_COURSE_ODD_H
#define PVM_COURSE_ODD_H

#include <stdint.h>

int keep(int buffer);     /* remember a buffer; 0: there is no room */
void forget(int buffer);  /* it has been freed */
void forget_received(void); /* the receive buffer will be freed by what comes now */
void forget_all(void);    /* free all */
void local_calls(uint64_t seed);
void odd_call(uint64_t seed);

#endif
