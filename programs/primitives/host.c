/*
 * host-node-send, host-node-recv, host-node-exchange, host-broadcast: a program on the host, and the nodes that it has
 * loaded.
 *
 *     host-node-recv        the host sends to the node, which answers with an empty message
 *     host-node-send        the host asks the node with an empty message, and the node sends to it
 *     host-node-exchange    host and node send to each other at the same time
 *     host-broadcast        the host sends to all nodes. Then one node, each time another, answers with an empty message:
 *                           a host that runs ahead of its nodes cannot hide the cost. Nodes that do not answer may lag
 *                           behind a little, as in broadcast.
 */
#ifdef ENV_HOSTS
enum { TAG_DATA = 11, TAG_WORD = 12 };

static void host_node_recv(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == 0) {
            payload_mark(payload_a, bytes, payload_turn);
            env_host_send(payload_a, bytes, 1, TAG_DATA);
            env_host_recv(NULL, 0, 1, TAG_WORD);
        } else {
            env_host_recv(payload_b, bytes, 0, TAG_DATA);
            payload_check(payload_b, bytes, payload_turn);
            env_host_send(NULL, 0, 0, TAG_WORD);
        }
    }
}

static void host_node_send(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        payload_turn++;
        if (me == 0) {
            env_host_send(NULL, 0, 1, TAG_WORD);
            env_host_recv(payload_b, bytes, 1, TAG_DATA);
            payload_check(payload_b, bytes, payload_turn);
        } else {
            env_host_recv(NULL, 0, 0, TAG_WORD);
            payload_mark(payload_a, bytes, payload_turn);
            env_host_send(payload_a, bytes, 0, TAG_DATA);
        }
    }
}

static void host_node_exchange(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        payload_mark(payload_a, bytes, ++payload_turn);
        env_host_exchange(payload_a, payload_b, bytes, 1 - me, TAG_DATA);
        payload_check(payload_b, bytes, payload_turn);
    }
}

static void host_broadcast(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        int answers = 1 + (int)(++payload_turn % (uint32_t)(tasks - 1));
        if (me == 0)
            payload_mark(payload_a, bytes, payload_turn);
        env_host_broadcast(payload_a, bytes);
        payload_check(payload_a, bytes, payload_turn);
        if (me == 0)
            env_host_recv(NULL, 0, answers, TAG_WORD);
        else if (me == answers)
            env_host_send(NULL, 0, 0, TAG_WORD);
    }
}

OPERATION(host_node_send, .name = "host-node-send", .run = host_node_send, .parts = 1, .unit = 1, .nodes = 1)
OPERATION(host_node_recv, .name = "host-node-recv", .run = host_node_recv, .parts = 1, .unit = 1, .nodes = 1)
OPERATION(host_node_exchange, .name = "host-node-exchange", .run = host_node_exchange, .parts = 1, .unit = 1, .nodes = 1)
OPERATION(host_broadcast, .name = "host-broadcast", .run = host_broadcast, .parts = 1, .unit = 1)
#endif
