/*
 * Random programs of several tasks that are valid by construction; see pvm_course.c.
 *
 * From a seed every task draws the same plan: what each of them does, step by step, in one order in
 * which nobody waits for anything that is not done before. So it needs to be told nothing but the seed.
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
    CONTEXTS = 3, /* PVM's own, and two that the first task has made for all */
    GROUPS = 3,
    VICTIMS = 8,
    NOBODY = -1,
    DAEMON = -2, /* who tells of ends */
};

enum kind {
    SEND,      /* a message to one, several or a group */
    AGAIN,     /* the send buffer as it is, once more */
    FORWARD,   /* what has been received last, to somebody else */
    RECEIVE,   /* a message, and unpack it */
    LOOK,      /* for what cannot be there */
    LOCAL,     /* some calls on the own buffers */
    ODD,       /* a call with arguments that make no sense */
    QUESTION,  /* about tasks, hosts, oneself */
    CONTEXT,   /* go into another */
    TOKEN,     /* what I have done is done before ... */
    AWAIT,     /* ... what I do */
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
    HANDLE,    /* from now on by a function */
    HANDLED,   /* all of those have come */
    CHOOSE,    /* by a function which message is received; or no more */
    SIGNAL,
    SIGNALLED,
    BEAR,      /* start tasks that will end */
    TELL,      /* their numbers */
    TOLD,
    WATCH,     /* be told of their end */
    UNWATCH,
    END,       /* end one */
    DEAD,      /* hear that it has ended */
    ASK_DEAD,
    KINDS,
};

/* A step of one task. The meaning of the numbers depends on its kind. */
struct step {
    int task, kind, episode;
    int other;      /* another task, or NOBODY */
    int tag;
    int message;    /* its place in the plan's list */
    int how;        /* one of several ways */
    int group;
    int count;
    int any_source, any_tag;
    int others[MAX_TASKS];
    uint64_t seed;  /* for what is drawn when it is done */
    int at;         /* it is the task's so-manieth */
};

struct message {
    int from, to, tag, context;
    int stream;     /* messages of one stream come in order */
    int single;     /* sent at once, without being packed */
    int handled;    /* goes to a function */
    int encoding;
    uint64_t script;
    int seen[MAX_TASKS]; /* steps of the tasks that are done before it is sent */
    int taken;      /* the receiver's so-manieth step takes it; 0: not yet */
};

struct plan {
    int tasks, steps, messages;
    struct step step[MAX_STEPS];
    struct message message[MAX_MESSAGES];
};

/* A plan of so many episodes; those that are marked are left out. */
void draw(struct plan *plan, uint64_t seed, int episodes, const char *left_out);
const char *name_of(int kind);

/* Numbers at random. */
uint64_t next_random(uint64_t *state);
unsigned random_below(uint64_t *state, unsigned most);
uint64_t mixed(uint64_t seed, uint64_t with);

/* The content of a message: pack_script packs it into the send buffer, unpack_script takes it out of the
 * receive buffer in one of several ways. */
void pack_script(uint64_t script, int encoding);
void unpack_script(uint64_t script, int encoding, uint64_t way);
int send_single(uint64_t script, int to, int tag);
void receive_single(uint64_t script, int from, int tag);
uint32_t digest(const void *bytes, size_t length);
void unpack_all_numbers(int length);
int data_type(int kind);

/* Writes a line of this task. */
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void say_tid(int tid);

/* The tasks of the course. */
extern int tids[MAX_TASKS], me, own_tid, parent_tid;
extern int contexts[CONTEXTS], wire;
void play(const struct plan *plan, const char *program);
void prepare(void);
void clean(void);

#endif
