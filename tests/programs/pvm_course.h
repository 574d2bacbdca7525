/*
 * Random programs of several tasks that are valid by construction; see pvm_course.c.
 *
 * Every task draws the same plan from the seed: what each of them does, step by step, in an order in which no task
 * waits for anything that is not done before. So a task needs nothing but the seed.
 */
#ifndef PVM_COURSE_H
#define PVM_COURSE_H

#include <pvm3.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MAX_TASKS = 6,
    MAX_STEPS = 4000,
    MAX_MESSAGES = 2000,
    MAX_EPISODES = 400,
    CONTEXTS = 3, /* PVM's own, and two that the first task makes for all */
    GROUPS = 3,
    VICTIMS = 8,
    NOBODY = -1,
    DAEMON = -2, /* the sender of notifications */
};

enum kind {
    SEND,      /* a message to one, several or a group */
    AGAIN,     /* the current send buffer once more */
    FORWARD,   /* the message received last, to another task */
    RECEIVE,   /* a message, and unpack it */
    LOOK,      /* for a message that cannot exist */
    LOCAL,     /* some calls on the task's own buffers */
    ODD,       /* a call with invalid arguments */
    QUESTION,  /* about tasks, hosts, the task itself */
    CONTEXT,   /* change to another context */
    TOKEN,     /* all steps of this task so far happen before ... */
    AWAIT,     /* ... the next steps of this task */
    MAILBOX,
    OPTION,
    JOIN,
    LEAVE,
    ASK_GROUP,
    BARRIER,
    FREEZE,
    REDUCE,
    GATHER,
    SCATTER,
    HANDLE,    /* install a handler */
    HANDLED,   /* all messages for the handler have arrived */
    CHOOSE,    /* install a function that chooses the received message, or remove it */
    SIGNAL,
    SIGNALLED,
    BEAR,      /* start tasks that will end */
    TELL,      /* send their numbers */
    TOLD,
    WATCH,     /* request notification of their end */
    UNWATCH,
    END,       /* end one */
    DEAD,      /* receive the notification of an end */
    ASK_DEAD,
    KINDS,
};

/* A step of one task. The meaning of the numbers depends on its kind. */
struct step {
    int task, kind, episode;
    int other;      /* another task, or NOBODY */
    int tag;
    int message;    /* index in the plan's list of messages */
    int how;        /* selects one of several ways */
    int group;
    int count;
    int any_source, any_tag;
    int others[MAX_TASKS];
    uint64_t seed;  /* for random choices made when the step is played */
    int at;         /* its index among the task's steps */
};

struct message {
    int from, to, tag, context;
    int stream;     /* messages of one stream arrive in order */
    int single;     /* sent in one call, without packing */
    int handled;    /* goes to a handler */
    int encoding;
    uint64_t script;
    int seen[MAX_TASKS]; /* how many steps of each task are done before it is sent */
    int taken;      /* index of the receiver's step that takes it; 0 if none yet */
};

struct plan {
    int tasks, steps, messages;
    struct step step[MAX_STEPS];
    struct message message[MAX_MESSAGES];
};

/* Draws a plan of this many episodes, except those that are listed in `left_out`. */
void draw(struct plan *plan, uint64_t seed, int episodes, const char *left_out);
const char *name_of(int kind);

/* Random numbers. */
uint64_t next_random(uint64_t *state);
unsigned random_below(uint64_t *state, unsigned most);
uint64_t mixed(uint64_t seed, uint64_t with);

/*
 * The content of a message: pack_script packs it into the send buffer, unpack_script unpacks it from the receive buffer
 * in one of several ways.
 */
void pack_script(uint64_t script, int encoding);
void unpack_script(uint64_t script, int encoding, uint64_t way);
int send_single(uint64_t script, int to, int tag);
void receive_single(uint64_t script, int from, int tag);
uint32_t digest(const void *bytes, size_t length);
void unpack_all_numbers(int length);
int data_type(int kind);

/* Writes a line of this task's output. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_tid(int tid);

/* The tasks of the course. */
extern int tids[MAX_TASKS], me, own_tid, parent_tid;
extern int contexts[CONTEXTS], wire;
void play(const struct plan *plan, const char *program);
void prepare(void);
void clean(void);

#endif
