/* The step's own fields as what they should be. */
#include "internal.h"

/* A reference such as $count puts a number where the schema wants a text, and the
 * output of a shell a text where it wants a number; both are meant. */
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
    /* Of a text only what is a number as JSON has it counts: no spaces, no 0x. */
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

/* The host puts counts in place of nested steps, A2.3: they stay with it, and
 * sn_run_blocks names them. */
int64_t sn_steps(const sn_ctx *ctx, const char *field) { return sn_int_or(sn_get(sn_get(ctx->fields, field), "count"), 0); }

size_t sn_branches(const sn_ctx *ctx, const char *field) { return sn_count(sn_get(sn_get(ctx->fields, field), "counts")); }
