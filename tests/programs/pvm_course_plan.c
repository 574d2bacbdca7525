/*
 * The plan of a course: random episodes of one or several steps each. While it is drawn, the state of the tasks is
 * tracked: which messages have been sent and not received, and which groups and contexts tasks are in.
 *
 * Two steps on different tasks that must happen in order (joining a group, writing a mailbox) have a token message
 * between them. The plan also counts which steps are done before a message is sent. With that, receives are widened to
 * wildcards as far as only one message can match.
 */
#include "pvm_course.h"
#include <string.h>

struct group {
    int member[MAX_TASKS]; /* by instance, or NOBODY */
    int size, frozen;
};

/* State while the plan is drawn. */
static struct plan *plan;
static uint64_t state;
static int episode;
static int done[MAX_TASKS];             /* number of steps of each task */
static int seen[MAX_TASKS][MAX_TASKS]; /* seen[a][b]: how many steps of b are done before a goes on */
static int context_of[MAX_TASKS];
static int packed[MAX_TASKS]; /* the message whose contents are in the send buffer, or -1 */
static struct group groups[GROUPS];
enum { MAILBOXES = GROUPS, THINGS };
static int last_at[THINGS]; /* the task that last used a group or the mailboxes */
static int next_tag, next_stream, victims, chooses[MAX_TASKS];

uint64_t next_random(uint64_t *at)
{
    uint64_t z = *at += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

unsigned random_below(uint64_t *at, unsigned most)
{
    return (unsigned)(next_random(at) >> 33) % most;
}

uint64_t mixed(uint64_t seed, uint64_t with)
{
    uint64_t at = seed ^ with * 0xd6e8feb86659fd93u;
    next_random(&at);
    return next_random(&at);
}

const char *name_of(int kind)
{
    static const char *const names[KINDS] = {
        "send", "again", "forward", "receive", "look", "local", "odd", "question", "context", "token", "await",
        "mailbox", "option", "join", "leave", "ask group", "barrier", "freeze", "reduce", "gather", "scatter",
        "handle", "handled", "choose", "signal", "signalled", "bear", "tell", "told", "watch", "unwatch", "end",
        "dead", "ask dead"};
    return names[kind];
}

static unsigned below(unsigned most)
{
    return random_below(&state, most);
}

static int full(void)
{
    return plan->steps > MAX_STEPS - 100 || plan->messages > MAX_MESSAGES - 20;
}

static struct step *add(int task, int kind)
{
    struct step *step = &plan->step[plan->steps++];
    memset(step, 0, sizeof *step);
    step->task = task;
    step->kind = kind;
    step->episode = episode;
    step->other = NOBODY;
    step->message = -1;
    step->seed = next_random(&state);
    step->at = ++done[task];
    seen[task][task] = done[task];
    return step;
}

/* Orders all steps of `from` so far before the next steps of `to`. */
static void before(int from, int to)
{
    for (int task = 0; task < plan->tasks; task++)
        if (seen[from][task] > seen[to][task])
            seen[to][task] = seen[from][task];
}

static void token(int from, int to)
{
    if (from == to)
        return;
    add(from, TOKEN)->other = to;
    before(from, to);
    add(to, AWAIT)->other = from;
}

/* Makes this task the next user of a shared thing. */
static void touch(int thing, int task)
{
    if (last_at[thing] != NOBODY)
        token(last_at[thing], task);
    last_at[thing] = task;
}

static int some_task(void)
{
    return (int)below((unsigned)plan->tasks);
}

static int another_task(int than)
{
    int task = (int)below((unsigned)plan->tasks - 1);
    return task + (task >= than);
}

static int some_encoding(void)
{
    static const int encodings[] = {PvmDataDefault, PvmDataDefault, PvmDataRaw, PvmDataRaw, PvmDataInPlace};
    return encodings[below(5)];
}

static int some_tag(void)
{
    static const int odd[] = {0, 1, 2, 99, 65536, INT32_MAX};
    return below(3) ? (int)below(5) : odd[below(6)];
}

static int new_message(int from, int to, int tag, int encoding, uint64_t script)
{
    struct message *message = &plan->message[plan->messages];
    memset(message, 0, sizeof *message);
    message->from = from;
    message->to = to;
    message->tag = tag;
    message->context = from == DAEMON ? context_of[to] : context_of[from];
    message->stream = from == DAEMON ? next_stream++ : from;
    message->encoding = encoding;
    message->script = script;
    memcpy(message->seen, seen[from == DAEMON ? to : from], sizeof message->seen);
    return plan->messages++;
}

/* Returns the group of which this task is a member, or -1. */
static int group_of(int task)
{
    int first = (int)below(GROUPS);
    for (int i = 0; i < GROUPS; i++)
        for (int at = 0; at < groups[(first + i) % GROUPS].size; at++)
            if (groups[(first + i) % GROUPS].member[at] == task)
                return (first + i) % GROUPS;
    return -1;
}

static void draw_send(void)
{
    int from = some_task(), tag = some_tag(), encoding = some_encoding(), single = below(5) == 0;
    int group = below(12) == 0 ? group_of(from) : -1, most = single || below(3) ? 1 : plan->tasks;
    uint64_t script = next_random(&state);
    int to[MAX_TASKS], count = 0;
    if (group >= 0) {
        single = 0;
        touch(group, from);
    }
    for (int task = 0; task < plan->tasks; task++)
        to[task] = NOBODY;
    if (group >= 0) {
        for (int at = 0; at < groups[group].size; at++)
            if (groups[group].member[at] != NOBODY && groups[group].member[at] != from)
                to[count++] = groups[group].member[at];
    } else if (most == 1) {
        to[count++] = some_task();
    } else {
        for (int task = 0; task < plan->tasks; task++)
            if (below(2))
                to[count++] = task;
    }
    struct step *step = add(from, SEND);
    step->how = group >= 0 ? 3 : single ? 2 : most > 1 ? 1 : 0;
    step->tag = tag;
    step->group = group;
    step->count = count;
    step->any_tag = encoding;
    step->any_source = (int)below(3);
    memcpy(step->others, to, sizeof to);
    step->message = plan->messages;
    step->seed = script;
    for (int at = 0; at < count; at++) {
        /* A multicast skips its sender. */
        if (step->how == 1 && to[at] == from)
            continue;
        int message = new_message(from, to[at], tag, encoding, script);
        plan->message[message].single = single;
    }
    packed[from] = -1;
    if (!single && count > 0 && step->any_source != 1)
        packed[from] = (int)(step - plan->step);
}

/* Sends the same buffer once more, to another task. */
static void draw_again(void)
{
    int from = some_task();
    if (packed[from] < 0)
        return;
    const struct step *first = &plan->step[packed[from]];
    struct step *step = add(from, AGAIN);
    step->other = some_task();
    step->tag = some_tag();
    step->message = new_message(from, step->other, step->tag, first->any_tag, first->seed);
}

static int is_first_of_its_kind(int which)
{
    const struct message *message = &plan->message[which];
    for (int at = 0; at < which; at++) {
        const struct message *other = &plan->message[at];
        if (!other->taken && !other->handled && other->to == message->to && other->context == message->context &&
            other->tag == message->tag && other->from == message->from)
            return 0;
    }
    return 1;
}

static void go_into(int task, int context)
{
    if (context_of[task] == context)
        return;
    context_of[task] = context;
    add(task, CONTEXT)->count = context;
}

static void receive(int which)
{
    struct message *message = &plan->message[which];
    int to = message->to;
    go_into(to, message->context);
    struct step *step = add(to, RECEIVE);
    step->other = message->from;
    step->tag = message->tag;
    step->message = which;
    step->how = (int)below(7);
    step->any_source = (int)below(2);
    step->any_tag = (int)below(2);
    message->taken = done[to];
    for (int task = 0; task < plan->tasks; task++)
        if (message->seen[task] > seen[to][task])
            seen[to][task] = message->seen[task];
    /* It may be forwarded before or after it is read. */
    if (below(8) == 0 && step->how != 3 && step->how != 6) {
        int encoding = message->encoding, single = message->single;
        struct step *on = add(to, FORWARD);
        on->other = another_task(to);
        on->tag = some_tag();
        on->message = new_message(to, on->other, on->tag, encoding, message->script);
        plan->message[on->message].single = single;
    }
}

/* Receives one message that has been sent, or all of them. */
static void draw_receive(int all)
{
    int first = plan->messages ? (int)below((unsigned)plan->messages) : 0, count = plan->messages;
    /* Messages that are forwarded meanwhile are received as well. */
    for (int at = 0; at < (all ? plan->messages : count); at++) {
        int which = all ? at : (first + at) % count;
        const struct message *message = &plan->message[which];
        if (message->taken || message->handled || !is_first_of_its_kind(which) || plan->steps > MAX_STEPS - 8)
            continue;
        receive(which);
        if (!all)
            return;
    }
}

static void draw_look(void)
{
    int task = some_task();
    struct step *step = add(task, LOOK);
    step->how = (int)below(4);
    step->other = some_task();
    step->tag = below(2) ? some_tag() : 7777;
    step->any_source = (int)below(2);
    step->any_tag = (int)below(2);
    step->count = context_of[task];
}

static void draw_context(void)
{
    go_into(some_task(), (int)below(CONTEXTS));
}

static void draw_plain(int kind)
{
    int task = some_task();
    if (kind == MAILBOX)
        touch(MAILBOXES, task);
    struct step *step = add(task, kind);
    step->other = some_task();
    step->how = (int)next_random(&state) & 0xffff;
    if (kind == LOCAL || kind == ODD)
        packed[task] = -1;
}

static int instance_of(const struct group *group, int task)
{
    for (int at = 0; at < group->size; at++)
        if (group->member[at] == task)
            return at;
    return -1;
}

static int members_of(const struct group *group, int *member)
{
    int count = 0;
    for (int at = 0; at < group->size; at++)
        if (group->member[at] != NOBODY)
            member[count++] = group->member[at];
    return count;
}

static void draw_join(void)
{
    int task = some_task(), which = (int)below(GROUPS);
    struct group *group = &groups[which];
    touch(which, task);
    add(task, JOIN)->group = which;
    if (group->frozen || instance_of(group, task) >= 0)
        return;
    int at = 0;
    while (at < group->size && group->member[at] != NOBODY)
        at++;
    group->member[at] = task;
    if (at == group->size)
        group->size++;
}

static void draw_leave(void)
{
    int task = some_task(), which = (int)below(GROUPS);
    struct group *group = &groups[which];
    if (group->frozen)
        return;
    touch(which, task);
    add(task, LEAVE)->group = which;
    int at = instance_of(group, task);
    if (at >= 0)
        group->member[at] = NOBODY;
    while (group->size > 0 && group->member[group->size - 1] == NOBODY)
        group->size--;
}

static void draw_ask_group(void)
{
    int task = some_task(), which = (int)below(GROUPS);
    touch(which, task);
    struct step *step = add(task, ASK_GROUP);
    step->group = which;
    step->how = (int)below(8);
    step->other = some_task();
    step->count = (int)below(8) - 1;
}

/* All members of a group do the same. If they wait for each other, none goes on before all have begun. */
static void draw_together(void)
{
    static const int kinds[] = {BARRIER, BARRIER, REDUCE, REDUCE, GATHER, SCATTER, FREEZE};
    int which = (int)below(GROUPS), kind = kinds[below(7)], member[MAX_TASKS];
    struct group *group = &groups[which];
    int count = members_of(group, member), root = (int)below((unsigned)(group->size ? group->size : 1));
    if (count == 0 || (kind == FREEZE && (group->frozen || count < group->size || below(4))))
        return;
    /* Groups with gaps between their instances are used for barriers only. */
    if (count < group->size)
        kind = BARRIER;
    uint64_t seed = next_random(&state);
    int tag = 1000 + next_tag++, from = last_at[which];
    for (int at = 0; at < count; at++)
        if (from != NOBODY)
            token(from, member[at]);
    for (int at = 0; at < count; at++) {
        struct step *step = add(member[at], kind);
        step->group = which;
        step->count = count;
        step->seed = seed;
        step->how = at;
        step->tag = tag;
        step->other = root;
        /* PVM's own library scatters with the root's send buffer. */
        if (kind == SCATTER)
            packed[member[at]] = -1;
    }
    if (kind == FREEZE)
        group->frozen = 1;
    /* All have ended when the first task is notified. */
    for (int at = 1; at < count; at++)
        token(member[at], member[0]);
    last_at[which] = member[0];
}

/* Messages that a handler is to receive. */
static void draw_handled(void)
{
    int to = some_task(), tag = 2000 + next_tag++, count = 1 + (int)below(4), total = 0;
    int context = context_of[to], from[4];
    struct step *handle = add(to, HANDLE);
    handle->tag = tag;
    handle->how = (int)below(4);
    for (int at = 0; at < count; at++) {
        from[at] = some_task();
        token(to, from[at]);
        go_into(from[at], context);
        struct step *step = add(from[at], SEND);
        step->how = 0;
        step->tag = tag;
        step->count = 1;
        step->others[0] = to;
        step->any_tag = (int)below(2);
        step->message = new_message(from[at], to, tag, step->any_tag, step->seed);
        plan->message[step->message].handled = 1;
        packed[from[at]] = -1;
        total++;
    }
    struct step *handled = add(to, HANDLED);
    handled->tag = tag;
    handled->count = total;
}

static void draw_choose(void)
{
    int task = some_task();
    chooses[task] = !chooses[task];
    add(task, CHOOSE)->how = chooses[task] ? 1 + (int)below(2) : 0;
}

static void draw_signal(void)
{
    int from = some_task(), to = some_task();
    /* Two simultaneous signals would merge into one. */
    token(to, from);
    add(from, SIGNAL)->other = to;
    before(from, to);
    add(to, SIGNALLED)->other = from;
    token(to, from);
}

/* Tasks are started; others are told of them and request notification of their ends; then they end. */
static void draw_victims(void)
{
    int parent = some_task(), count = 1 + (int)below(2), told = some_task(), tag = 3000 + next_tag++;
    if (victims + count > VICTIMS)
        return;
    int first = victims, again = (int)below(3) == 0, watchers[2] = {parent, told};
    victims += count;
    struct step *bear = add(parent, BEAR);
    bear->count = count;
    bear->how = first;
    if (told != parent) {
        struct step *tell = add(parent, TELL);
        tell->other = told;
        tell->how = first;
        tell->count = count;
        before(parent, told);
        tell = add(told, TOLD);
        tell->other = parent;
        tell->how = first;
        tell->count = count;
    }
    for (int at = 0; at < (told == parent ? 1 : 2); at++) {
        struct step *watch = add(watchers[at], WATCH);
        watch->tag = tag;
        watch->how = first;
        watch->count = count;
        for (int victim = 0; victim < count; victim++)
            new_message(DAEMON, watchers[at], tag, 0, 0);
    }
    if (again) {
        struct step *unwatch = add(told, UNWATCH);
        unwatch->tag = tag;
        unwatch->how = first;
        unwatch->count = count;
    }
    if (told != parent)
        token(told, parent);
    int killer = below(2) ? parent : told;
    if (killer != parent)
        token(parent, killer);
    for (int at = 0; at < count; at++) {
        struct step *end = add(killer, END);
        end->how = first + at;
        end->count = (int)below(5);
    }
    for (int at = 0; at < (told == parent ? 1 : 2); at++) {
        struct step *dead = add(watchers[at], DEAD);
        dead->tag = tag;
        dead->how = first;
        dead->count = count;
        if (again && watchers[at] == told)
            dead->any_tag = 1;
        /* These notifications are received here, in the context in which they were requested. */
        for (int message = 0; message < plan->messages; message++)
            if (plan->message[message].from == DAEMON && plan->message[message].to == watchers[at] && !plan->message[message].taken)
                plan->message[message].taken = dead->at;
        struct step *ask = add(watchers[at], ASK_DEAD);
        ask->how = first + (int)below((unsigned)count);
        packed[watchers[at]] = -1;
    }
}

static void draw_episode(void)
{
    unsigned what = below(100);
    if (what < 24)
        draw_send();
    else if (what < 28)
        draw_again();
    else if (what < 48)
        draw_receive(0);
    else if (what < 51)
        draw_look();
    else if (what < 57)
        draw_plain(LOCAL);
    else if (what < 63)
        draw_plain(ODD);
    else if (what < 66)
        draw_plain(QUESTION);
    else if (what < 69)
        draw_context();
    else if (what < 76)
        draw_plain(MAILBOX);
    else if (what < 79)
        draw_plain(OPTION);
    else if (what < 84)
        draw_join();
    else if (what < 86)
        draw_leave();
    else if (what < 89)
        draw_ask_group();
    else if (what < 94)
        draw_together();
    else if (what < 96)
        draw_handled();
    else if (what < 98)
        draw_choose();
    else if (what < 99)
        draw_signal();
    else
        draw_victims();
}

/* Returns whether this message may have arrived when the task does that step. */
static int may_be_there(const struct message *message, const struct step *step)
{
    return message->to == step->task && !message->handled && (!message->taken || message->taken >= step->at) &&
           message->seen[step->task] < step->at;
}

/* Returns whether, with these wildcards, only the step's message can match (or no message, if the step has none). */
static int is_determined(const struct step *step, int context, int any_source, int any_tag)
{
    const struct message *own = step->message >= 0 ? &plan->message[step->message] : NULL;
    for (int at = 0; at < plan->messages; at++) {
        const struct message *message = &plan->message[at];
        if (message == own || message->context != context || !may_be_there(message, step))
            continue;
        if ((!any_source && message->from != step->other) || (!any_tag && message->tag != step->tag))
            continue;
        if (!own || message->stream != own->stream || at < step->message)
            return 0;
    }
    return 1;
}

static void widen(struct step *step)
{
    int context = step->kind == LOOK ? step->count : plan->message[step->message].context;
    if (!is_determined(step, context, step->any_source, step->any_tag)) {
        step->any_source = 0;
        if (!is_determined(step, context, 0, step->any_tag))
            step->any_tag = 0;
    }
    if (step->kind == LOOK && !is_determined(step, context, 0, step->any_tag))
        step->tag = 7777;
}

void draw(struct plan *into, uint64_t seed, int episodes, const char *left_out)
{
    plan = into;
    memset(plan, 0, sizeof *plan);
    memset(done, 0, sizeof done);
    memset(seen, 0, sizeof seen);
    memset(context_of, 0, sizeof context_of);
    memset(groups, 0, sizeof groups);
    memset(chooses, 0, sizeof chooses);
    next_tag = victims = 0;
    next_stream = MAX_TASKS;
    for (int task = 0; task < MAX_TASKS; task++)
        packed[task] = -1;
    for (int thing = 0; thing < THINGS; thing++)
        last_at[thing] = NOBODY;
    state = mixed(seed, 1);
    plan->tasks = 2 + (int)below(MAX_TASKS - 1);
    for (episode = 0; episode < episodes && !full(); episode++) {
        state = mixed(seed, 100 + (uint64_t)episode);
        if (!left_out[episode])
            draw_episode();
    }
    state = mixed(seed, 2);
    draw_receive(1);
    for (int at = 0; at < plan->steps; at++)
        if (plan->step[at].kind == RECEIVE || plan->step[at].kind == LOOK)
            widen(&plan->step[at]);
}
