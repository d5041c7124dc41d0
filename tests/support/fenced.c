/* Allocates for NumPy with pages that nobody may touch beside each array: see fenced.py. */

#define _GNU_SOURCE
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE 4096

int fence_before;

typedef struct {
    char *base;
    size_t whole, size;
} record;

/* What is noted of an array: before the page in front of it, or right before the array. */
static record *noted(char *address)
{
    return (record *)(fence_before ? address - 2 * PAGE : address - 32);
}

void *fenced_malloc(void *context, size_t size)
{
    (void)context;
    size_t rounded = size < 16 ? 16 : (size + 15) & ~(size_t)15;
    size_t pages = (rounded + 32 + PAGE - 1) & ~(size_t)(PAGE - 1);
    size_t whole = pages + (fence_before ? 2 : 1) * PAGE;
    char *base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return NULL;
    char *address = fence_before ? base + 2 * PAGE : base + pages - rounded;
    mprotect(fence_before ? base + PAGE : base + pages, PAGE, PROT_NONE);
    record found = {base, whole, size};
    *noted(address) = found;
    return address;
}

void *fenced_calloc(void *context, size_t count, size_t size)
{
    return fenced_malloc(context, count * size);
}

void fenced_free(void *context, void *address, size_t size)
{
    (void)context, (void)size;
    if (address)
        munmap(noted(address)->base, noted(address)->whole);
}

void *fenced_realloc(void *context, void *address, size_t size)
{
    char *new = fenced_malloc(context, size);
    if (address && new) {
        size_t before = noted(address)->size;
        memcpy(new, address, before < size ? before : size);
        fenced_free(context, address, before);
    }
    return new;
}
