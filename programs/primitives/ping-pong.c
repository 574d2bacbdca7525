/* ping-pong: the echo test of one-to-one with PVM's ways to send messages. Half of the round trip counts.
 *
 *     ping-pong-blocking                              the same as one-to-one: in PVM, pvm_psend and pvm_precv
 *     ping-pong-blocking-pack-ENCODING[-TYPE]         elements are packed and sent, then received and unpacked
 *     ping-pong-asynchronous                          the receiver polls until the message has arrived
 *
 * ENCODING is default (XDR), raw or in-place. TYPE is int, float or double; without it the elements are bytes. An
 * adapter with env_pack_send and env_recv_unpack defines ENV_PACKS; it also defines ENV_PACKS_TYPES if it has the
 * types, and ENV_PACKS_DEFAULT if it has the encoding that every machine can read. */
#ifdef ENV_PACKS
static inline __attribute__((always_inline)) void ping_pong_packed(enum env_encoding encoding, enum env_type type,
                                                                   size_t bytes, long n)
{
    if (me == 0) {
        for (long i = 0; i < n; i++) {
            payload_mark(payload_a, bytes, ++payload_turn);
            env_pack_send(encoding, type, payload_a, bytes, 1, 1);
            env_recv_unpack(encoding, type, payload_b, bytes, 1, 1);
            payload_check(payload_b, bytes, payload_turn);
        }
    } else {
        for (long i = 0; i < n; i++) {
            env_recv_unpack(encoding, type, payload_b, bytes, 0, 1);
            env_pack_send(encoding, type, payload_b, bytes, 0, 1);
        }
    }
}

/* Defines an operation and its function. Elements are `size` bytes long. */
#define PING_PONG_PACKED(full_name, function, encoding, type, size)                                                           \
    static void ping_pong_##function(size_t bytes, long n)                                                                 \
    {                                                                                                                      \
        ping_pong_packed(encoding, type, bytes, n);                                                                        \
    }                                                                                                                      \
    OPERATION(ping_pong_##function, .name = full_name, .run = ping_pong_##function, .parts = 2,    \
              .unit = size, .pairs = 2)

PING_PONG_PACKED("ping-pong-blocking-pack-raw", raw, ENV_RAW, ENV_BYTE, 1)
PING_PONG_PACKED("ping-pong-blocking-pack-in-place", in_place, ENV_IN_PLACE, ENV_BYTE, 1)
#ifdef ENV_PACKS_TYPES
PING_PONG_PACKED("ping-pong-blocking-pack-raw-int", raw_int, ENV_RAW, ENV_INT, 4)
PING_PONG_PACKED("ping-pong-blocking-pack-raw-float", raw_float, ENV_RAW, ENV_FLOAT, 4)
PING_PONG_PACKED("ping-pong-blocking-pack-raw-double", raw_double, ENV_RAW, ENV_DOUBLE, 8)
PING_PONG_PACKED("ping-pong-blocking-pack-in-place-int", in_place_int, ENV_IN_PLACE, ENV_INT, 4)
PING_PONG_PACKED("ping-pong-blocking-pack-in-place-float", in_place_float, ENV_IN_PLACE, ENV_FLOAT, 4)
PING_PONG_PACKED("ping-pong-blocking-pack-in-place-double", in_place_double, ENV_IN_PLACE, ENV_DOUBLE, 8)
#endif
#ifdef ENV_PACKS_DEFAULT
PING_PONG_PACKED("ping-pong-blocking-pack-default", default, ENV_DEFAULT, ENV_BYTE, 1)
PING_PONG_PACKED("ping-pong-blocking-pack-default-int", default_int, ENV_DEFAULT, ENV_INT, 4)
PING_PONG_PACKED("ping-pong-blocking-pack-default-float", default_float, ENV_DEFAULT, ENV_FLOAT, 4)
PING_PONG_PACKED("ping-pong-blocking-pack-default-double", default_double, ENV_DEFAULT, ENV_DOUBLE, 8)
#endif

static void ping_pong_asynchronous(size_t bytes, long n)
{
    if (me == 0) {
        for (long i = 0; i < n; i++) {
            payload_mark(payload_a, bytes, ++payload_turn);
            env_send(payload_a, bytes, 1, 1);
            env_poll(payload_b, bytes, 1, 1);
            payload_check(payload_b, bytes, payload_turn);
        }
    } else {
        for (long i = 0; i < n; i++) {
            env_poll(payload_b, bytes, 0, 1);
            env_send(payload_b, bytes, 0, 1);
        }
    }
}

OPERATION(ping_pong_asynchronous, .name = "ping-pong-asynchronous", .run = ping_pong_asynchronous, .parts = 2, .unit = 1, .pairs = 2)
#endif
