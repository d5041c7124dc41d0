/* Preloaded: makes the k-th allocation fail that compiled code, Numba's runtime or NumPy makes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
static void *(*real_mmap)(void *, size_t, int, int, int, off_t);

static volatile long armed, left, most, seen[3];
static __thread int inside;

/* 0: code without a file, 1: Numba's runtime, 2: NumPy; -1: others, whose failures are Python's. */
static int kind_of(void *caller)
{
    Dl_info info;
    if (!dladdr(caller, &info)) return 0;
    if (!info.dli_fname) return -1;
    if (strstr(info.dli_fname, "_nrt_python")) return 1;
    if (strstr(info.dli_fname, "_multiarray_umath")) return 2;
    return -1;
}

static int refused(void *caller)
{
    int kind, no = 0;
    if (!armed || inside) return 0;
    inside = 1;
    kind = kind_of(caller);
    if (kind >= 0 && (armed >> kind & 1)) {
        __sync_fetch_and_add(&seen[kind], 1);
        long now = __sync_sub_and_fetch(&left, 1);
        no = now < 0 && now >= -most;
    }
    inside = 0;
    if (no) errno = ENOMEM;
    return no;
}

void *malloc(size_t n) { return refused(__builtin_return_address(0)) ? 0 : __libc_malloc(n); }
void *calloc(size_t n, size_t m)
{ return refused(__builtin_return_address(0)) ? 0 : __libc_calloc(n, m); }
void *realloc(void *p, size_t n)
{ return refused(__builtin_return_address(0)) ? 0 : __libc_realloc(p, n); }
void *mmap(void *a, size_t n, int p, int f, int d, off_t o)
{
    if (!real_mmap) real_mmap = dlsym(RTLD_NEXT, "mmap");
    return refused(__builtin_return_address(0)) ? MAP_FAILED : real_mmap(a, n, p, f, d, o);
}

/* From now on `failing` allocations fail after `allowed` others, and none after these. */
void allocations_arm(long kinds, long allowed, long failing)
{ left = allowed; most = failing; seen[0] = seen[1] = seen[2] = 0; __sync_synchronize(); armed = kinds; }

/* Which were counted; whether one failed is in the fourth. */
void allocations_disarm(long *counts)
{
    armed = 0;
    for (int k = 0; k < 3; k++) counts[k] = seen[k];
    counts[3] = left < 0;
}
