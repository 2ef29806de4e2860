/* SIGBUS, shared between the library and the program. Until the library maps memory that another user may cut (guard.rs) every call here is the C
 * library's own. From then on the library's handler comes first, mends what is its own, and hands everything else to what the program has set, with
 * the program's mask and flags. */
#include "hook.h"
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

DECLARE_REAL(int, sigaction, int, const struct sigaction *, struct sigaction *);
DECLARE_REAL(sighandler_t, signal, int, sighandler_t);
DECLARE_REAL(sighandler_t, sysv_signal, int, sighandler_t);
DECLARE_REAL(sighandler_t, sigset, int, sighandler_t);
DECLARE_REAL(int, sigignore, int);

__attribute__((constructor)) static void resolve(void)
{
    REAL(sigaction), REAL(signal), REAL(sysv_signal), REAL(sigset), REAL(sigignore);
}

static int guarding;
/* What the program has set. Two copies, so that a fault never finds one half written. */
static struct sigaction programs[2];
static int current;
static pthread_mutex_t changing = PTHREAD_MUTEX_INITIALIZER;

static void on_fault(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    if (info->si_code > 0 && sw_guard_fault((uintptr_t)info->si_addr)) {
        errno = saved;
        return;
    }
    struct sigaction own = programs[__atomic_load_n(&current, __ATOMIC_ACQUIRE)];
    if (own.sa_flags & SA_SIGINFO) {
        if (own.sa_flags & SA_RESETHAND) sigaction(SIGBUS, &(struct sigaction){.sa_handler = SIG_DFL}, 0);
        own.sa_sigaction(number, info, context);
    } else if (own.sa_handler == SIG_IGN && info->si_code <= 0) {
        /* Sent by somebody, and ignored. A fault is not to be ignored: the kernel ends the program. */
    } else if (own.sa_handler == SIG_DFL || own.sa_handler == SIG_IGN) {
        /* Back to the instruction, or to the sender's signal, with nobody in between. */
        struct sigaction end = {.sa_handler = SIG_DFL};
        REAL(sigaction)(SIGBUS, &end, 0);
        if (info->si_code <= 0) raise(number);
    } else {
        if (own.sa_flags & SA_RESETHAND) sigaction(SIGBUS, &(struct sigaction){.sa_handler = SIG_DFL}, 0);
        own.sa_handler(number);
    }
    errno = saved;
}

/* The library's handler with the mask and the flags of the program's. */
static int put(const struct sigaction *own)
{
    struct sigaction ours = {.sa_sigaction = on_fault, .sa_mask = own->sa_mask};
    int is_handler = (own->sa_flags & SA_SIGINFO) || (own->sa_handler != SIG_DFL && own->sa_handler != SIG_IGN);
    ours.sa_flags = SA_SIGINFO | (is_handler ? own->sa_flags & ~SA_RESETHAND : SA_RESTART);
    return REAL(sigaction)(SIGBUS, &ours, 0);
}

/* In the child of a fork nobody else is changing anything. */
static void forked(void) { pthread_mutex_init(&changing, 0); }

/* Called when the first memory is mapped that another user may cut. */
void sw_guard_install(void)
{
    if (__atomic_load_n(&guarding, __ATOMIC_ACQUIRE)) return;
    int saved = errno;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&changing);
    if (!guarding) pthread_atfork(0, 0, forked);
    if (!guarding && REAL(sigaction) && REAL(sigaction)(SIGBUS, 0, &programs[0]) == 0 && put(&programs[0]) == 0)
        __atomic_store_n(&guarding, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&changing);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    errno = saved;
}

/* A new program starts with what this one ignores: that is put back where the kernel looks. */
void sw_guard_exec(int goes)
{
    if (!__atomic_load_n(&guarding, __ATOMIC_ACQUIRE)) return;
    const struct sigaction *own = &programs[__atomic_load_n(&current, __ATOMIC_ACQUIRE)];
    if ((own->sa_flags & SA_SIGINFO) || own->sa_handler != SIG_IGN) return;
    int saved = errno;
    if (goes) REAL(sigaction)(SIGBUS, own, 0);
    else put(own);
    errno = saved;
}

static int is_ours(int number) { return number == SIGBUS && __atomic_load_n(&guarding, __ATOMIC_ACQUIRE); }

static int exchange(const struct sigaction *new, struct sigaction *old)
{
    /* A child of vfork changes what the kernel does with it, in memory that is its parent's. */
    if (sw_in_vfork_child()) {
        struct sigaction was = programs[__atomic_load_n(&current, __ATOMIC_ACQUIRE)];
        int done = new ? REAL(sigaction)(SIGBUS, new, 0) : 0;
        if (old && done == 0) *old = was;
        return done;
    }
    /* What the library has put is nothing that a program may have. */
    if (new && (new->sa_flags & SA_SIGINFO) && new->sa_sigaction == on_fault) return errno = EINVAL, -1;
    int r = 0;
    sigset_t all, before;
    struct sigaction was, next;
    if (new) next = *new;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_mutex_lock(&changing);
    was = programs[current];
    if (new && (r = put(&next)) == 0) {
        programs[!current] = next;
        __atomic_store_n(&current, !current, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&changing);
    pthread_sigmask(SIG_SETMASK, &before, 0);
    if (old && r == 0) *old = was;
    return r;
}

static sighandler_t replace(sighandler_t handler, int flags, int masked)
{
    struct sigaction new = {.sa_handler = handler, .sa_flags = flags}, old;
    sigemptyset(&new.sa_mask);
    if (masked) sigaddset(&new.sa_mask, SIGBUS);
    return exchange(&new, &old) == 0 ? old.sa_handler : SIG_ERR;
}

EXPORT int sigaction(int number, const struct sigaction *new, struct sigaction *old)
{
    return is_ours(number) ? exchange(new, old) : REAL(sigaction)(number, new, old);
}
EXPORT int __sigaction(int number, const struct sigaction *new, struct sigaction *old) { return sigaction(number, new, old); }

EXPORT sighandler_t signal(int number, sighandler_t handler)
{
    return is_ours(number) ? replace(handler, SA_RESTART, 1) : REAL(signal)(number, handler);
}
EXPORT sighandler_t bsd_signal(int number, sighandler_t handler) { return signal(number, handler); }
EXPORT sighandler_t ssignal(int number, sighandler_t handler) { return signal(number, handler); }

EXPORT sighandler_t sysv_signal(int number, sighandler_t handler)
{
    return is_ours(number) ? replace(handler, SA_RESETHAND | SA_NODEFER, 0) : REAL(sysv_signal)(number, handler);
}
EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) { return sysv_signal(number, handler); }

EXPORT sighandler_t sigset(int number, sighandler_t handler)
{
    if (!is_ours(number)) return REAL(sigset)(number, handler);
    sigset_t one, before;
    sigemptyset(&one);
    sigaddset(&one, SIGBUS);
    struct sigaction own;
    exchange(0, &own);
    pthread_sigmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &one, &before);
    if (handler != SIG_HOLD && replace(handler, 0, 0) == SIG_ERR) return SIG_ERR;
    return sigismember(&before, SIGBUS) ? SIG_HOLD : own.sa_handler;
}
EXPORT int sigignore(int number)
{
    return is_ours(number) ? (replace(SIG_IGN, 0, 0) == SIG_ERR ? -1 : 0) : REAL(sigignore)(number);
}
