/* Waiting for the lines of a shell execution, A6.5. */
#include "internal.h"

SN_IMPORT(sentinel_watch)

/* A missing exit code is distinguished from the code 0. */
bool sn_watch_lines(sn_ctx *ctx, const sn_watch *watch, sn_watched *out) {
    sn_value *request = sn_object(ctx);
    sn_set_text(ctx, request, "executionId", watch->execution);
    sn_set(ctx, request, "rules", watch->rules);
    sn_set_text(ctx, request, "until", watch->until);
    const sn_value *answer = sn_call(ctx, "sentinel_watch", sentinel_watch, request), *list = sn_get(answer, "lines");
    if (answer == NULL) return false;
    *out = (sn_watched){
        .execution = sn_text_of(sn_get(answer, "executionId")),
        .line_count = sn_count(list),
        .text = sn_text_of(sn_get(answer, "text")),
        .finished = sn_bool_or(sn_get(answer, "finished"), false),
        .dropped = sn_int_or(sn_get(answer, "dropped"), 0),
        .cursor = sn_int_or(sn_get(answer, "cursor"), 0),
    };
    out->has_exit_code = sn_as_int(sn_get(answer, "exitCode"), &out->exit_code);
    sn_line *lines = sn_alloc(ctx, out->line_count * sizeof *lines);
    if (lines == NULL) return false;
    out->lines = lines;
    for (const sn_item *item = sn_items(list); item != NULL; item = item->next, lines++) {
        *lines = (sn_line){
            .text = sn_text_of(sn_get(item->value, "text")),
            .classification = sn_text_of(sn_get(item->value, "classification")),
            .stream = sn_text_of(sn_get(item->value, "stream")),
            .number = sn_int_or(sn_get(item->value, "lineNumber"), 0),
            .timestamp = sn_get(item->value, "timestamp"),
        };
    }
    return true;
}
