/*
 * The cost of a stretch of calls, counted in the process that makes them:
 *
 *  allocations   this program's malloc and free replace libc's, also for libregatta.so
 *  system calls  a seccomp filter traps each one; the handler counts it and executes it
 *  locks         the trap flag stops the processor after every instruction; atomic read-modify-writes, full
 *                fences and system calls are recognized by their bytes
 *
 * The last two read registers and instructions, so they work on x86-64 only.
 */
#ifndef COUNT_H
#define COUNT_H

#include "check.h"

#include <errno.h>
#include <sys/syscall.h>

struct counts {
    unsigned long allocations, calls, locks, steps;
};
static struct counts counts;

/* ---- allocations ------------------------------------------------------------------------------ */

/* Memory is never reused, which is enough for counting. */
static _Alignas(64) unsigned char heap[64 << 20];
static size_t heap_used;

void *memalign(size_t alignment, size_t len)
{
    __atomic_fetch_add(&counts.allocations, 1, __ATOMIC_RELAXED);
    if (alignment < 16)
        alignment = 16;
    /* The block's length is stored before it, for realloc. */
    if (len > sizeof heap || alignment > sizeof heap)
        return errno = ENOMEM, NULL;
    size_t reach = len + alignment + 16;
    size_t start = __atomic_fetch_add(&heap_used, reach, __ATOMIC_RELAXED);
    if (start + reach > sizeof heap)
        return errno = ENOMEM, NULL;
    uintptr_t at = ((uintptr_t)heap + start + 16 + alignment - 1) & ~(uintptr_t)(alignment - 1);
    ((size_t *)at)[-1] = len;
    return (void *)at;
}

void *malloc(size_t len)
{
    return memalign(16, len);
}

void *aligned_alloc(size_t alignment, size_t len)
{
    return memalign(alignment, len);
}

int posix_memalign(void **out, size_t alignment, size_t len)
{
    *out = memalign(alignment, len);
    return *out == NULL ? ENOMEM : 0;
}

/* The heap is zero-initialized. */
void *calloc(size_t count, size_t len)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, len, &bytes))
        return errno = ENOMEM, NULL;
    return memalign(16, bytes);
}

void free(void *block)
{
    if (block != NULL)
        __atomic_fetch_add(&counts.allocations, 1, __ATOMIC_RELAXED);
}

void *realloc(void *block, size_t len)
{
    void *fresh = memalign(16, len);
    if (block != NULL && fresh != NULL) {
        size_t old = ((size_t *)block)[-1];
        memcpy(fresh, block, old < len ? old : len);
    }
    return fresh;
}

/* ---- system calls ----------------------------------------------------------------------------- */

#ifdef __x86_64__

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <ucontext.h>

/* The only address from which the filter lets a call pass. `return_here` follows the instruction. */
long make_call(long number, long a, long b, long c, long d, long e, long f);
extern char return_here[];
__asm__(".text\n"
        ".type make_call, @function\n"
        "make_call:\n"
        "  mov %rdi, %rax\n"
        "  mov %rsi, %rdi\n"
        "  mov %rdx, %rsi\n"
        "  mov %rcx, %rdx\n"
        "  mov %r8, %r10\n"
        "  mov %r9, %r8\n"
        "  mov 8(%rsp), %r9\n"
        "  syscall\n"
        "return_here:\n"
        "  ret\n"
        ".size make_call, . - make_call\n");

static void on_call(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    greg_t *is = ((ucontext_t *)context)->uc_mcontext.gregs;
    counts.calls++;
    is[REG_RAX] = make_call(info->si_syscall, is[REG_RDI], is[REG_RSI], is[REG_RDX], is[REG_R10],
                            is[REG_R8], is[REG_R9]);
}

/* Counts every system call from now on. This cannot be undone. */
static inline void count_calls(void)
{
    struct sigaction action = {.sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER};
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    uint64_t here = (uintptr_t)return_here;
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define LOAD_HIGH(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field) + 4)
#define SKIP_UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, skip)
    struct sock_filter steps[] = {
        /* The handler's return. */
        LOAD(nr),
        SKIP_UNLESS(SYS_rt_sigreturn, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        LOAD(instruction_pointer),
        SKIP_UNLESS(here, 3),
        LOAD_HIGH(instruction_pointer),
        SKIP_UNLESS(here >> 32, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        FAILED("the kernel takes no seccomp filter (%s), so system calls cannot be counted",
               strerror(errno));
    /* Checks that the counter works. */
    unsigned long before = counts.calls;
    CHECK(syscall(SYS_getppid) > 0 && counts.calls == before + 1);
}

/* ---- locks ------------------------------------------------------------------------------------ */

/* Returns whether the instruction is an atomic read-modify-write, a full fence, or an entry into the kernel. */
static bool is_lock(const unsigned char *at)
{
    for (;; at++) {
        if (*at == 0xf0) /* lock */
            return true;
        bool segment = (*at & 0xe7) == 0x26 || *at == 0x64 || *at == 0x65;
        bool size = *at == 0x66 || *at == 0x67, repeat = *at == 0xf2 || *at == 0xf3;
        if (!segment && !size && !repeat)
            break;
    }
    if ((*at & 0xf0) == 0x40) /* REX */
        at++;
    if (*at == 0x86 || *at == 0x87) /* xchg: atomic if it has a memory operand */
        return at[1] < 0xc0;
    if (*at != 0x0f)
        return false;
    /* syscall; mfence, which is 0f ae /6 on a register */
    return at[1] == 0x05 || (at[1] == 0xae && (at[2] & 0xf8) == 0xf0);
}

static volatile bool stepping;
enum { TRAP_FLAG = 0x100 };

/* Runs after each instruction; the next one is about to run. */
static void on_step(int signal, siginfo_t *info, void *context)
{
    (void)signal, (void)info;
    greg_t *is = ((ucontext_t *)context)->uc_mcontext.gregs;
    if (!stepping) {
        is[REG_EFL] &= ~(greg_t)TRAP_FLAG;
        return;
    }
    is[REG_EFL] |= TRAP_FLAG;
    counts.steps++;
    counts.locks += is_lock((const unsigned char *)is[REG_RIP]);
}

/* Starts counting these instructions, until stop_steps. */
static inline void start_steps(void)
{
    struct sigaction action = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGTRAP, &action, NULL) == 0);
    counts.steps = counts.locks = 0;
    stepping = true;
    __asm__ volatile("int3" ::: "memory");
}

static inline void stop_steps(void)
{
    stepping = false;
    __asm__ volatile("nop" ::: "memory");
}

#else

static inline void count_calls(void)
{
    FAILED("system calls are counted on x86-64 only");
}

static inline void start_steps(void)
{
    FAILED("instructions are counted on x86-64 only");
}

static inline void stop_steps(void) {}

#endif

#endif
