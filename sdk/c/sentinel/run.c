/* The exports run and validate: input in, output out, A3 and A4. */
#include "internal.h"

static const sn_text none = {NULL, 0};

/* The step type with that name, or NULL. */
static const sn_step *find(const sn_plugin *plugin, sn_text type) {
    for (size_t i = 0; i < plugin->step_count; i++) {
        if (sn_same(sn_str(plugin->steps[i].type), type)) return &plugin->steps[i];
    }
    return NULL;
}

/* Reads the input of an export; a text that is not JSON is a fault of the host. */
static const sn_value *input(sn_ctx *ctx, const char *what, sn_text text) {
    const sn_value *v = sn_parse(ctx, text);
    if (v == NULL && !ctx->spent) {
        sn_text why = ctx->error.message;
        return sn_fail(ctx, SN_INTERNAL, "%s input: %.*s", what, (int)why.n, why.at);
    }
    return v;
}

/* Copies the input to the context; texts and values are shared with the input. */
static void fill(sn_ctx *ctx, const sn_value *in) {
    const sn_value *step = sn_get(in, "step"), *run = sn_get(in, "run"), *retry = sn_get(in, "retry");
    ctx->step_type = sn_text_of(sn_get(step, "type"));
    ctx->id = sn_text_of(sn_get(step, "id"));
    ctx->name = sn_text_of(sn_get(step, "name"));
    ctx->address = sn_text_of(sn_get(step, "address"));
    ctx->path = sn_text_of(sn_get(step, "path"));
    ctx->fields = sn_get(step, "fields");
    ctx->run = sn_text_of(sn_get(run, "id"));
    ctx->sentinel = sn_text_of(sn_get(run, "sentinel"));
    ctx->iteration = sn_int_or(sn_get(run, "iteration"), 1);
    ctx->workspace = sn_text_of(sn_get(run, "workspace"));
    ctx->key = sn_text_of(sn_get(run, "key"));
    ctx->attempt = sn_int_or(sn_get(in, "attempt"), 1);
    ctx->state = sn_get(in, "state");
    ctx->has_retry = sn_error_of(sn_get(retry, "error"), &ctx->retry_error);
    ctx->retry_attempts = sn_int_or(sn_get(retry, "attempts"), 0);
    ctx->retry_category = sn_text_of(sn_get(retry, "category"));
}

sn_text sn_run(sn_ctx *ctx, const sn_plugin *plugin, sn_text text) {
    const sn_value *in = input(ctx, "run", text);
    if (in == NULL) return none;
    int64_t abi = sn_int_or(sn_get(in, "abi"), 0);
    if (abi != SN_ABI) {
        sn_fail(ctx, SN_INTERNAL, "run input: abi %lld, want %d", (long long)abi, SN_ABI);
        return none;
    }
    fill(ctx, in);
    const sn_step *step = find(plugin, ctx->step_type);
    if (step == NULL) {
        sn_bad_field(ctx, "type", "plugin %s has no step type \"%.*s\"", plugin->name, (int)ctx->step_type.n, ctx->step_type.at);
        return none;
    }
    /* For a step that returns NULL without an error. */
    ctx->error = (sn_error){.code = SN_PLUGIN, .message = sn_str("the step returned neither an output nor an error")};
    const sn_value *output = step->run(ctx);
    if (output == NULL) return none;
    sn_value *whole = sn_object(ctx);
    sn_set(ctx, whole, "output", output);
    sn_text out = sn_print(ctx, whole);
    /* Out of memory: the output may be incomplete. */
    return ctx->spent ? none : out;
}

void sn_problem(sn_ctx *ctx, const char *field, const char *message, const char *hint) {
    sn_value *problem = sn_object(ctx);
    sn_set_str(ctx, problem, "field", field);
    sn_set_str(ctx, problem, "message", message);
    sn_set_str(ctx, problem, "hint", hint);
    sn_push(ctx, ctx->problems, problem);
}

/* A type without a check has no problems beyond the schema. */
sn_text sn_validate(sn_ctx *ctx, const sn_plugin *plugin, sn_text text) {
    const sn_value *in = input(ctx, "validate", text);
    if (in == NULL) return none;
    sn_value *whole = sn_object(ctx);
    ctx->problems = sn_list(ctx);
    ctx->fields = sn_get(in, "fields");
    const sn_step *step = find(plugin, sn_text_of(sn_get(in, "type")));
    if (step != NULL && step->check != NULL) step->check(ctx, ctx->fields);
    sn_set(ctx, whole, "problems", ctx->problems);
    sn_text out = sn_print(ctx, whole);
    return ctx->spent ? none : out;
}
