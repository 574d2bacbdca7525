/* Messages of ints, floats and doubles with the interface's own types, and exchanges with non-blocking calls.
 *
 *     ping-pong-blocking-TYPE    the echo test ping-pong-blocking with such elements; half of the round trip counts
 *     exchange-isend[-TYPE]      both tasks start a send and a receive and wait for them: in PVM, pvm_psend and pvm_precv
 *     exchange-sendrecv[-TYPE]   the same in one call
 *
 * TYPE is int, float or double; without it the elements are bytes. An adapter whose messages have types defines
 * ENV_TYPES. An adapter with a combined call defines ENV_SENDRECV. */
static void exchange_isend(size_t bytes, long n)
{
    int peer = me ^ 1;
    for (long i = 0; i < n; i++) {
        env_request requests[2];
        payload_mark(payload_a, bytes, ++payload_turn);
        requests[0] = env_isend(payload_a, bytes, peer, 2);
        requests[1] = env_irecv(payload_b, bytes, peer, 2);
        env_waitall(2, requests);
        payload_check(payload_b, bytes, payload_turn);
    }
}

OPERATION(exchange_isend, .name = "exchange-isend", .run = exchange_isend, .parts = 1, .unit = 1, .pairs = 2)

#ifdef ENV_TYPES
static inline __attribute__((always_inline)) void typed_ping_pong(enum env_type type, size_t bytes, long n)
{
    if (me == 0) {
        for (long i = 0; i < n; i++) {
            payload_mark(payload_a, bytes, ++payload_turn);
            env_type_send(type, payload_a, bytes, 1, 1);
            env_type_recv(type, payload_b, bytes, 1, 1);
            payload_check(payload_b, bytes, payload_turn);
        }
    } else {
        for (long i = 0; i < n; i++) {
            env_type_recv(type, payload_b, bytes, 0, 1);
            env_type_send(type, payload_b, bytes, 0, 1);
        }
    }
}

static inline __attribute__((always_inline)) void typed_exchange(enum env_type type, size_t bytes, long n)
{
    int peer = me ^ 1;
    for (long i = 0; i < n; i++) {
        payload_mark(payload_a, bytes, ++payload_turn);
        env_type_exchange(type, payload_a, payload_b, bytes, peer, 2);
        payload_check(payload_b, bytes, payload_turn);
    }
}

/* Defines the functions of one type. */
#define TYPED(name, type)                                \
    static void typed_ping_pong_##name(size_t bytes, long n) \
    {                                                    \
        typed_ping_pong(type, bytes, n);                 \
    }                                                    \
    static void typed_exchange_##name(size_t bytes, long n)  \
    {                                                    \
        typed_exchange(type, bytes, n);                  \
    }

TYPED(int, ENV_INT)
TYPED(float, ENV_FLOAT)
TYPED(double, ENV_DOUBLE)

OPERATION(blocking_int, .name = "ping-pong-blocking-int", .run = typed_ping_pong_int, .parts = 2, .unit = 4, .pairs = 2)
OPERATION(blocking_float, .name = "ping-pong-blocking-float", .run = typed_ping_pong_float, .parts = 2, .unit = 4, .pairs = 2)
OPERATION(blocking_double, .name = "ping-pong-blocking-double", .run = typed_ping_pong_double, .parts = 2, .unit = 8, .pairs = 2)
OPERATION(isend_int, .name = "exchange-isend-int", .run = typed_exchange_int, .parts = 1, .unit = 4, .pairs = 2)
OPERATION(isend_float, .name = "exchange-isend-float", .run = typed_exchange_float, .parts = 1, .unit = 4, .pairs = 2)
OPERATION(isend_double, .name = "exchange-isend-double", .run = typed_exchange_double, .parts = 1, .unit = 8, .pairs = 2)
#endif

#ifdef ENV_SENDRECV
static inline __attribute__((always_inline)) void sendrecv_typed(enum env_type type, size_t bytes, long n)
{
    int peer = me ^ 1;
    for (long i = 0; i < n; i++) {
        payload_mark(payload_a, bytes, ++payload_turn);
        env_sendrecv(type, payload_a, payload_b, bytes, peer, 2);
        payload_check(payload_b, bytes, payload_turn);
    }
}

/* Defines the function of one type. */
#define SENDRECV(name, type)                       \
    static void sendrecv_##name(size_t bytes, long n) \
    {                                              \
        sendrecv_typed(type, bytes, n);            \
    }

SENDRECV(byte, ENV_BYTE)
OPERATION(sendrecv_byte, .name = "exchange-sendrecv", .run = sendrecv_byte, .parts = 1, .unit = 1, .pairs = 2)

#ifdef ENV_TYPES
SENDRECV(int, ENV_INT)
SENDRECV(float, ENV_FLOAT)
SENDRECV(double, ENV_DOUBLE)
OPERATION(sendrecv_int, .name = "exchange-sendrecv-int", .run = sendrecv_int, .parts = 1, .unit = 4, .pairs = 2)
OPERATION(sendrecv_float, .name = "exchange-sendrecv-float", .run = sendrecv_float, .parts = 1, .unit = 4, .pairs = 2)
OPERATION(sendrecv_double, .name = "exchange-sendrecv-double", .run = sendrecv_double, .parts = 1, .unit = 8, .pairs = 2)
#endif
#endif
