/* Waiting for time, events, runs and people, A6.11: it costs nothing. */
#include "internal.h"

SN_IMPORT(sentinel_wait)

/* The one of its members that is set says what is waited for. */
bool sn_wait_for(sn_ctx *ctx, const sn_wait *wait, sn_waited *out) {
    sn_value *request = sn_object(ctx);
    sn_set_int(ctx, request, "durationMs", wait->duration_ms);
    sn_set_text(ctx, request, "until", wait->until);
    sn_set_text(ctx, request, "event", wait->event);
    sn_set_text(ctx, request, "run", wait->run);
    if (wait->prompt.at != NULL) {
        sn_value *decision = sn_object(ctx);
        sn_set_text(ctx, decision, "prompt", wait->prompt);
        sn_set(ctx, decision, "approvers", wait->approvers);
        sn_set(ctx, request, "decision", decision);
    }
    /* A duration of 0 is one too, where nothing else is waited for. */
    if (sn_count(request) == 0) sn_set(ctx, request, "durationMs", sn_int(ctx, 0));
    sn_set_int(ctx, request, "timeoutMs", wait->timeout_ms);
    const sn_value *answer = sn_call(ctx, "sentinel_wait", sentinel_wait, request), *decision = sn_get(answer, "decision");
    if (answer == NULL) return false;
    *out = (sn_waited){
        .timed_out = sn_bool_or(sn_get(answer, "timedOut"), false),
        .event = sn_get(answer, "event"),
        .result = sn_get(answer, "result"),
        .decided = sn_given(decision),
        .approved = sn_same(sn_text_of(sn_get(decision, "verdict")), sn_str("approve")),
        .by = sn_text_of(sn_get(decision, "by")),
        .at = sn_text_of(sn_get(decision, "at")),
        .comment = sn_text_of(sn_get(decision, "comment")),
    };
    return true;
}

/* Calendar time: also that in which no process of the host runs. */
bool sn_sleep(sn_ctx *ctx, int64_t ms) {
    sn_wait wait = {.duration_ms = ms};
    sn_waited waited;
    return sn_wait_for(ctx, &wait, &waited);
}
