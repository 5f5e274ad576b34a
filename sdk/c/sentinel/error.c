/* Errors with a code, A5. */
#include <string.h>

#include "internal.h"

static const char *const codes[] = {
    [SN_BAD_FIELDS] = "bad_fields", [SN_DENIED] = "denied",       [SN_NOT_FOUND] = "not_found",     [SN_CONFLICT] = "conflict",
    [SN_TIMEOUT] = "timeout",       [SN_CANCELLED] = "cancelled", [SN_UNAVAILABLE] = "unavailable", [SN_LIMIT] = "limit",
    [SN_TRAP] = "trap",             [SN_MEMORY] = "memory",       [SN_OUTPUT] = "output",           [SN_PLUGIN] = "plugin",
    [SN_INTERRUPTED] = "interrupted", [SN_INTERNAL] = "internal",
};

/* A code from a newer header, or an invalid number, becomes SN_PLUGIN. */
const char *sn_code_name(sn_code code) { return (size_t)code < SN_COUNT(codes) ? codes[code] : "plugin"; }

/* Out of memory is kept as the error, because it causes all others. */
void *sn_fail(sn_ctx *ctx, sn_code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    sn_text message = sn_vformat(ctx, format, args);
    va_end(args);
    if (!ctx->spent) ctx->error = (sn_error){.code = code, .message = message};
    return NULL;
}

/* Permanent: the same fields are invalid in every attempt. */
void *sn_bad_field(sn_ctx *ctx, const char *field, const char *format, ...) {
    va_list args;
    va_start(args, format);
    sn_text why = sn_vformat(ctx, format, args);
    va_end(args);
    sn_fail(ctx, SN_BAD_FIELDS, "%s: %.*s", field, (int)why.n, why.at);
    if (!ctx->spent) {
        ctx->error.field = sn_copy(ctx, field, strlen(field));
        ctx->error.permanent = true;
    }
    return NULL;
}

/* Omits the keys that the error does not have. */
sn_value *sn_error_value(sn_ctx *ctx, const sn_error *error) {
    sn_value *v = sn_object(ctx);
    sn_set_str(ctx, v, "code", sn_code_name(error->code));
    sn_set_text(ctx, v, "message", error->message.at == NULL ? sn_str("") : error->message);
    if (error->field.n > 0) sn_set_text(ctx, v, "field", error->field);
    sn_set_int(ctx, v, "retryAfterMs", error->retry_after_ms);
    sn_set_true(ctx, v, "permanent", error->permanent);
    if (error->hint.n > 0) sn_set_text(ctx, v, "hint", error->hint);
    return v;
}

/* The texts are those of the value; no copy is made. */
bool sn_error_of(const sn_value *v, sn_error *error) {
    if (!sn_given(v)) return false;
    sn_text code = sn_text_of(sn_get(v, "code")), message = sn_text_of(sn_get(v, "message"));
    *error = (sn_error){
        .code = SN_PLUGIN,
        .message = message.at == NULL ? sn_str("unknown error") : message,
        .field = sn_text_of(sn_get(v, "field")),
        .retry_after_ms = sn_int_or(sn_get(v, "retryAfterMs"), 0),
        .permanent = sn_bool_or(sn_get(v, "permanent"), false),
        .hint = sn_text_of(sn_get(v, "hint")),
    };
    for (size_t i = 0; i < SN_COUNT(codes); i++) {
        if (sn_same(code, sn_str(codes[i]))) error->code = (sn_code)i;
    }
    return true;
}
