/* Running nested steps, A6.8. */
#include "internal.h"

SN_IMPORT(sentinel_block)

/* Results are in the order of the blocks. Another number of results is a fault of
 * the host, and none is read. */
bool sn_run_blocks(sn_ctx *ctx, const sn_block *blocks, size_t count, bool fail_fast, int64_t concurrency, sn_block_result *out) {
    sn_value *request = sn_object(ctx), *list = sn_list(ctx);
    for (size_t i = 0; i < count; i++) {
        sn_value *block = sn_object(ctx);
        sn_set_str(ctx, block, "field", blocks[i].field);
        sn_set(ctx, block, "vars", blocks[i].vars);
        sn_push(ctx, list, block);
    }
    sn_set(ctx, request, "blocks", list);
    sn_set_true(ctx, request, "failFast", fail_fast);
    sn_set_int(ctx, request, "concurrency", concurrency);
    const sn_value *answer = sn_call(ctx, "sentinel_block", sentinel_block, request), *found = sn_get(answer, "blocks");
    if (answer == NULL) return false;
    if (sn_count(found) != count)
        return sn_fail(ctx, SN_INTERNAL, "sentinel_block: %zu results for %zu blocks", sn_count(found), count) != NULL;
    size_t i = 0;
    for (const sn_item *item = sn_items(found); item != NULL; item = item->next, i++) {
        out[i] = (sn_block_result){.success = sn_bool_or(sn_get(item->value, "success"), false), .output = sn_get(item->value, "output")};
        if (!out[i].success && !sn_error_of(sn_get(item->value, "error"), &out[i].error)) {
            out[i].error = (sn_error){.code = SN_INTERNAL, .message = sn_format(ctx, "block %s: ended without a reason", blocks[i].field)};
        }
    }
    return true;
}

/* The error of the block becomes that of the caller, with its own code. */
const sn_value *sn_run_block(sn_ctx *ctx, const char *field, const sn_value *vars) {
    sn_block block = {.field = field, .vars = vars};
    sn_block_result result;
    if (!sn_run_blocks(ctx, &block, 1, false, 0, &result)) return NULL;
    if (result.success) return result.output != NULL ? result.output : sn_null(ctx);
    ctx->error = result.error;
    return NULL;
}
