/* The step's own fields, with a type. */
#include "internal.h"

/* A reference such as $count can have a number where a text is expected, and the
 * output of a shell a text where a number is expected; both are converted. */
bool sn_text_field(sn_ctx *ctx, const char *name, sn_text *out) {
    const sn_value *v = sn_get(ctx->fields, name);
    switch (sn_kind_of(v)) {
    case SN_ABSENT:
    case SN_NULL:
        *out = sn_str("");
        return true;
    case SN_STRING:
    case SN_NUMBER:
        *out = v->text;
        return true;
    case SN_BOOL:
        *out = sn_str(v->truth ? "true" : "false");
        return true;
    default:
        return sn_bad_field(ctx, name, "want a text, got %s", sn_kind_name(v)) != NULL;
    }
}

bool sn_int_field(sn_ctx *ctx, const char *name, int64_t min, int64_t fallback, int64_t *out) {
    const sn_value *v = sn_get(ctx->fields, name);
    *out = fallback;
    if (!sn_given(v)) return true;
    /* A text is converted only if it is a JSON number: no spaces, no 0x. */
    const sn_value *number = v->kind == SN_STRING ? sn_number(ctx, v->text) : v;
    if (!sn_as_int(number, out)) return sn_bad_field(ctx, name, "want a whole number, got %s", sn_kind_name(v)) != NULL;
    if (*out < min) return sn_bad_field(ctx, name, "want at least %lld, got %lld", (long long)min, (long long)*out) != NULL;
    return true;
}

bool sn_bool_field(sn_ctx *ctx, const char *name, bool fallback, bool *out) {
    const sn_value *v = sn_get(ctx->fields, name);
    *out = sn_bool_or(v, fallback);
    return !sn_given(v) || v->kind == SN_BOOL || sn_bad_field(ctx, name, "want true or false, got %s", sn_kind_name(v)) != NULL;
}

/* The host replaces nested steps by their count, A2.3; sn_run_blocks executes
 * them. */
int64_t sn_steps(const sn_ctx *ctx, const char *field) { return sn_int_or(sn_get(sn_get(ctx->fields, field), "count"), 0); }

size_t sn_branches(const sn_ctx *ctx, const char *field) { return sn_count(sn_get(sn_get(ctx->fields, field), "counts")); }
