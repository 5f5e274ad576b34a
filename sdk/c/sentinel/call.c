/* The calls with small answers: A6.3, A6.6, A6.7, A6.9, A6.10, A6.12, A6.14, A6.15. */
#include "internal.h"

SN_IMPORT(sentinel_command)
SN_IMPORT(sentinel_eval)
SN_IMPORT(sentinel_var)
SN_IMPORT(sentinel_spawn)
SN_IMPORT(sentinel_emit)
SN_IMPORT(sentinel_checkpoint)
SN_IMPORT(sentinel_log)
SN_IMPORT(sentinel_now)

/* sn_set omits absent params, here and below. */
const sn_value *sn_command(sn_ctx *ctx, const char *name, const sn_value *params) {
    sn_value *request = sn_object(ctx);
    sn_set_str(ctx, request, "command", name);
    sn_set(ctx, request, "params", params);
    return sn_call(ctx, "sentinel_command", sentinel_command, request);
}

const sn_value *sn_tool_command(sn_ctx *ctx, const char *name, const sn_value *arguments, const sn_value *tools) {
    sn_value *request = sn_object(ctx);
    sn_set_str(ctx, request, "command", name);
    sn_set(ctx, request, "params", arguments);
    sn_set_str(ctx, request, "by", "model");
    sn_set(ctx, request, "tools", tools);
    return sn_call(ctx, "sentinel_command", sentinel_command, request);
}

bool sn_eval(sn_ctx *ctx, const char *expression, const sn_value *vars, const sn_value **value, bool *truthy) {
    sn_value *request = sn_object(ctx);
    sn_set_str(ctx, request, "expression", expression);
    sn_set(ctx, request, "vars", vars);
    const sn_value *answer = sn_call(ctx, "sentinel_eval", sentinel_eval, request);
    if (value != NULL) *value = sn_get(answer, "value");
    if (truthy != NULL) *truthy = sn_bool_or(sn_get(answer, "truthy"), false);
    return answer != NULL;
}

bool sn_get_var(sn_ctx *ctx, const char *path, const sn_value **value) {
    sn_value *request = sn_object(ctx);
    sn_set_str(ctx, request, "get", path);
    const sn_value *answer = sn_call(ctx, "sentinel_var", sentinel_var, request);
    *value = sn_bool_or(sn_get(answer, "found"), false) ? sn_get(answer, "value") : NULL;
    return answer != NULL;
}

bool sn_set_vars(sn_ctx *ctx, const sn_value *values) {
    sn_value *request = sn_object(ctx);
    sn_set(ctx, request, "set", values);
    return sn_call(ctx, "sentinel_var", sentinel_var, request) != NULL;
}

/* An absent value sets the variable to null. */
bool sn_set_var(sn_ctx *ctx, const char *name, const sn_value *value) {
    sn_value *values = sn_object(ctx);
    sn_set(ctx, values, name, value == NULL ? sn_null(ctx) : value);
    return sn_set_vars(ctx, values);
}

/* The two ways to start a child run differ in one key of the request. */
static bool spawn(sn_ctx *ctx, const char *key, const char *name, const sn_value *inputs, sn_text *run, sn_text *sentinel) {
    sn_value *request = sn_object(ctx);
    sn_set_str(ctx, request, key, name);
    sn_set(ctx, request, "inputs", inputs);
    const sn_value *answer = sn_call(ctx, "sentinel_spawn", sentinel_spawn, request);
    if (run != NULL) *run = sn_text_of(sn_get(answer, "run"));
    if (sentinel != NULL) *sentinel = sn_text_of(sn_get(answer, "sentinel"));
    return answer != NULL;
}

bool sn_spawn(sn_ctx *ctx, const char *field, const sn_value *inputs, sn_text *run, sn_text *sentinel) {
    return spawn(ctx, "field", field, inputs, run, sentinel);
}

bool sn_spawn_sentinel(sn_ctx *ctx, const char *id, const sn_value *inputs, sn_text *run, sn_text *sentinel) {
    return spawn(ctx, "sentinel", id, inputs, run, sentinel);
}

bool sn_emit(sn_ctx *ctx, const char *event, const sn_value *data, sn_text *id) {
    sn_value *request = sn_object(ctx);
    sn_set_str(ctx, request, "event", event);
    sn_set(ctx, request, "data", data);
    const sn_value *answer = sn_call(ctx, "sentinel_emit", sentinel_emit, request);
    if (id != NULL) *id = sn_text_of(sn_get(answer, "id"));
    return answer != NULL;
}

/* The state must not be null: it is how a step detects that it resumes. */
bool sn_checkpoint(sn_ctx *ctx, const sn_value *state) {
    sn_value *request = sn_object(ctx);
    sn_set(ctx, request, "state", state == NULL ? sn_null(ctx) : state);
    return sn_call(ctx, "sentinel_checkpoint", sentinel_checkpoint, request) != NULL;
}

bool sn_log(sn_ctx *ctx, const char *level, sn_text message) {
    sn_value *request = sn_object(ctx);
    sn_set_str(ctx, request, "level", level);
    sn_set_text(ctx, request, "message", message.at == NULL ? sn_str("") : message);
    return sn_call(ctx, "sentinel_log", sentinel_log, request) != NULL;
}

/* A failure to log must not replace an earlier error. */
static void log_only(sn_ctx *ctx, const char *level, sn_text message) {
    sn_error before = ctx->error;
    if (!sn_log(ctx, level, message) && !ctx->spent) ctx->error = before;
}

void sn_debug(sn_ctx *ctx, sn_text message) { log_only(ctx, "debug", message); }

void sn_info(sn_ctx *ctx, sn_text message) { log_only(ctx, "info", message); }

void sn_warn(sn_ctx *ctx, sn_text message) { log_only(ctx, "warn", message); }

bool sn_now(sn_ctx *ctx, int64_t *unix_ms, sn_text *iso) {
    const sn_value *answer = sn_call(ctx, "sentinel_now", sentinel_now, sn_object(ctx));
    if (unix_ms != NULL) *unix_ms = sn_int_or(sn_get(answer, "unixMs"), 0);
    if (iso != NULL) *iso = sn_text_of(sn_get(answer, "iso"));
    return answer != NULL;
}
