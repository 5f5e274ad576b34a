/* The memory of a context: an arena of blocks that are filled from the start and
 * freed together. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

typedef struct block {
    struct block *before;
    size_t size;
    /* The offset of the data that follows is a multiple of 16. */
    _Alignas(16) char at[];
} block;

/* The smallest block. Most steps need only one. */
enum { BLOCK = 8 << 10 };

/* The text is static, because there is no memory left. */
void sn_out_of_memory(sn_ctx *ctx) {
    ctx->spent = true;
    ctx->error = (sn_error){.code = SN_MEMORY, .message = sn_str("the plugin's memory is used up")};
}

void *sn_alloc(sn_ctx *ctx, size_t n) {
    if (n > SIZE_MAX / 2) {
        sn_out_of_memory(ctx);
        return NULL;
    }
    /* Kept a multiple of 16, so that the next allocation is aligned for any type. */
    n = (n + 15) & ~(size_t)15;
    block *b = ctx->memory;
    if (b == NULL || n > b->size - ctx->used) {
        /* The rest of the previous block is not used: it is smaller than the
         * allocation. */
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

/* The zero after it is from sn_alloc. */
sn_text sn_copy(sn_ctx *ctx, const char *bytes, size_t n) {
    char *p = sn_alloc(ctx, n + 1);
    if (p == NULL) return (sn_text){NULL, 0};
    if (n > 0) memcpy(p, bytes, n);
    return (sn_text){p, n};
}

sn_mark sn_here(sn_ctx *ctx) { return (sn_mark){ctx->memory, ctx->used}; }

/* Blocks are in the order of their allocation, the newest first. */
void sn_back_to(sn_ctx *ctx, sn_mark mark) {
    while (ctx->memory != mark.block) {
        block *b = ctx->memory;
        ctx->memory = b->before;
        ctx->held -= b->size;
        free(b);
    }
    ctx->used = mark.used;
}

/* Memory is allocated on first use. */
void sn_open(sn_ctx *ctx, sn_host host, void *user) { *ctx = (sn_ctx){.host = host, .user = user}; }

void sn_close(sn_ctx *ctx) { sn_back_to(ctx, (sn_mark){NULL, 0}); }
