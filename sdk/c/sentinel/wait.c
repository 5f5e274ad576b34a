/* Waiting for time, events, runs and decisions, A6.11. */
#include "internal.h"

SN_IMPORT(sentinel_wait)

/* The member that is set selects the kind of wait. */
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
        sn_set_text(ctx, decision, "callKind", wait->call_kind);
        sn_set(ctx, request, "decision", decision);
    }
    /* Without any other member, it is a duration, also 0. */
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

/* Calendar time, including the time in which no process of the host runs. */
bool sn_sleep(sn_ctx *ctx, int64_t ms) {
    sn_wait wait = {.duration_ms = ms};
    sn_waited waited;
    return sn_wait_for(ctx, &wait, &waited);
}
