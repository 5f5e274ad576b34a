/* Requests to hosts that are granted to the plugin, A6.13. */
#include "internal.h"

SN_IMPORT(sentinel_http)

/* A failure to get a response is an error; any response is an answer. */
bool sn_http(sn_ctx *ctx, const sn_request *request, sn_response *out) {
    sn_value *wanted = sn_object(ctx);
    sn_set_text(ctx, wanted, "method", request->method);
    sn_set_text(ctx, wanted, "url", request->url);
    sn_set(ctx, wanted, "headers", request->headers);
    sn_set_text(ctx, wanted, "body", request->body);
    sn_set_true(ctx, wanted, "bodySecrets", request->body_secrets);
    sn_set_int(ctx, wanted, "timeoutMs", request->timeout_ms);
    const sn_value *answer = sn_call(ctx, "sentinel_http", sentinel_http, wanted);
    if (answer == NULL) return false;
    *out = (sn_response){
        .status = sn_int_or(sn_get(answer, "status"), 0),
        .headers = sn_get(answer, "headers"),
        .body = sn_text_of(sn_get(answer, "body")),
        .base64 = sn_same(sn_text_of(sn_get(answer, "encoding")), sn_str("base64")),
        .truncated = sn_bool_or(sn_get(answer, "truncated"), false),
    };
    return true;
}
