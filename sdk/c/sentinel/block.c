/* Running nested steps, A6.8. */
#include "internal.h"

SN_IMPORT(sentinel_block)

/* Results are in the order of the blocks. Another number of results is a fault of
 * the host, and none is read. */
bool sn_run_blocks(sn_ctx *ctx, const sn_block *blocks, size_t count, const sn_block_options *options, sn_block_result *out) {
    static const sn_block_options none = {0};
    if (options == NULL) options = &none;
    sn_value *request = sn_object(ctx), *list = sn_list(ctx);
    for (size_t i = 0; i < count; i++) {
        sn_value *block = sn_object(ctx);
        sn_set_str(ctx, block, "field", blocks[i].field);
        sn_set(ctx, block, "vars", blocks[i].vars);
        sn_push(ctx, list, block);
    }
    sn_set(ctx, request, "blocks", list);
    sn_set_true(ctx, request, "failFast", options->fail_fast);
    sn_set_true(ctx, request, "drain", options->drain);
    sn_set_true(ctx, request, "isolated", options->isolated);
    sn_set_int(ctx, request, "concurrency", options->concurrency);
    sn_set_int(ctx, request, "total", options->total);
    const sn_value *answer = sn_call(ctx, "sentinel_block", sentinel_block, request), *found = sn_get(answer, "blocks");
    if (answer == NULL) return false;
    if (sn_count(found) != count)
        return sn_fail(ctx, SN_INTERNAL, "sentinel_block: %zu results for %zu blocks", sn_count(found), count) != NULL;
    size_t i = 0;
    for (const sn_item *item = sn_items(found); item != NULL; item = item->next, i++) {
        out[i] = (sn_block_result){.success = sn_bool_or(sn_get(item->value, "success"), false), .output = sn_get(item->value, "output"),
                                   .skipped = sn_bool_or(sn_get(item->value, "skipped"), false)};
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
    if (!sn_run_blocks(ctx, &block, 1, NULL, &result)) return NULL;
    if (result.success) return result.output != NULL ? result.output : sn_null(ctx);
    ctx->error = result.error;
    return NULL;
}
