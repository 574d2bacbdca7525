/* netpipe: the echo test of NetPIPE, in which both tasks send from the buffer into which they receive. Half of the
 * round trip counts.
 *
 *     netpipe                  with the library's usual calls
 *     netpipe-pack-in-place    with packing; PVM's elements stay in place until they are sent
 *     netpipe-pack-default     with packing in the format that any machine can read
 *
 * The message is overwritten before the answer arrives, so that a missing answer is noticed. */
static inline void netpipe_spoil(size_t bytes)
{
    payload_mark(payload_a, bytes, ~payload_turn);
}

static void netpipe(size_t bytes, long n)
{
    if (me == 0) {
        for (long i = 0; i < n; i++) {
            payload_mark(payload_a, bytes, ++payload_turn);
            env_send(payload_a, bytes, 1, 1);
            netpipe_spoil(bytes);
            env_recv(payload_a, bytes, 1, 1);
            payload_check(payload_a, bytes, payload_turn);
        }
    } else {
        for (long i = 0; i < n; i++) {
            env_recv(payload_a, bytes, 0, 1);
            env_send(payload_a, bytes, 0, 1);
        }
    }
}

OPERATION(netpipe, .name = "netpipe", .run = netpipe, .parts = 2, .unit = 1, .pairs = 2)

#ifdef ENV_PACKS
static inline __attribute__((always_inline)) void netpipe_packed(enum env_encoding encoding, size_t bytes, long n)
{
    if (me == 0) {
        for (long i = 0; i < n; i++) {
            payload_mark(payload_a, bytes, ++payload_turn);
            env_pack_send(encoding, ENV_BYTE, payload_a, bytes, 1, 1);
            netpipe_spoil(bytes);
            env_recv_unpack(encoding, ENV_BYTE, payload_a, bytes, 1, 1);
            payload_check(payload_a, bytes, payload_turn);
        }
    } else {
        for (long i = 0; i < n; i++) {
            env_recv_unpack(encoding, ENV_BYTE, payload_a, bytes, 0, 1);
            env_pack_send(encoding, ENV_BYTE, payload_a, bytes, 0, 1);
        }
    }
}

static void netpipe_in_place(size_t bytes, long n)
{
    netpipe_packed(ENV_IN_PLACE, bytes, n);
}

OPERATION(netpipe_in_place, .name = "netpipe-pack-in-place", .run = netpipe_in_place, .parts = 2, .unit = 1, .pairs = 2)

#ifdef ENV_PACKS_DEFAULT
static void netpipe_default(size_t bytes, long n)
{
    netpipe_packed(ENV_DEFAULT, bytes, n);
}

OPERATION(netpipe_default, .name = "netpipe-pack-default", .run = netpipe_default, .parts = 2, .unit = 1, .pairs = 2)
#endif
#endif
