/* The memory of a context: blocks that are filled from their start and freed
 * together. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct block {
    struct block *before;
    size_t size;
    /* The offset of what follows is a multiple of 16. */
    _Alignas(16) char at[];
} block;

/* What a block holds at least. Most steps are done with one. */
enum { BLOCK = 8 << 10 };

/* The text is static: there is no memory to make one in. */
void sn_out_of_memory(sn_ctx *ctx) {
    ctx->spent = true;
    ctx->error = (sn_error){.code = SN_MEMORY, .message = sn_str("the plugin's memory is used up")};
}

void *sn_alloc(sn_ctx *ctx, size_t n) {
    if (n > SIZE_MAX / 2) {
        sn_out_of_memory(ctx);
        return NULL;
    }
    /* Kept a multiple of 16, so that what comes next is aligned for anything. */
    n = (n + 15) & ~(size_t)15;
    block *b = ctx->memory;
    if (b == NULL || n > b->size - ctx->used) {
        /* The rest of the block before is given up: it is small beside what is
         * asked for, or the block was full. */
        size_t size = n > BLOCK ? n : BLOCK;
        bool over = ctx->limit > 0 && size > ctx->limit - (ctx->held < ctx->limit ? ctx->held : ctx->limit);
        block *fresh = over ? NULL : malloc(sizeof(block) + size);
        if (fresh == NULL) {
            sn_out_of_memory(ctx);
            return NULL;
        }
        *fresh = (block){.before = b, .size = size};
        ctx->memory = b = fresh;
        ctx->used = 0;
        ctx->held += size;
    }
    void *p = b->at + ctx->used;
    ctx->used += n;
    return memset(p, 0, n);
}

/* The zero behind it comes from sn_alloc. */
sn_text sn_copy(sn_ctx *ctx, const char *bytes, size_t n) {
    char *p = sn_alloc(ctx, n + 1);
    if (p == NULL) return (sn_text){NULL, 0};
    if (n > 0) memcpy(p, bytes, n);
    return (sn_text){p, n};
}

sn_mark sn_here(sn_ctx *ctx) { return (sn_mark){ctx->memory, ctx->used}; }

/* Blocks are in the order in which they were begun, the newest first. */
void sn_back_to(sn_ctx *ctx, sn_mark mark) {
    while (ctx->memory != mark.block) {
        block *b = ctx->memory;
        ctx->memory = b->before;
        ctx->held -= b->size;
        free(b);
    }
    ctx->used = mark.used;
}

/* Nothing is allocated before it is needed. */
void sn_open(sn_ctx *ctx, sn_host host, void *user) { *ctx = (sn_ctx){.host = host, .user = user}; }

void sn_close(sn_ctx *ctx) { sn_back_to(ctx, (sn_mark){NULL, 0}); }
