/* The conformance guest of this SDK, which the ABI kit tests; sdk/abitest/GUEST.md
 * specifies it. */
#include "conformance.h"

static const sn_value *echo(sn_ctx *ctx) {
    sn_value *out = sn_object(ctx);
    sn_set(ctx, out, "echo", sn_get(ctx->fields, "echo"));
    sn_set(ctx, out, "type", sn_string(ctx, ctx->step_type));
    sn_set(ctx, out, "id", ctx->id.at == NULL ? sn_null(ctx) : sn_string(ctx, ctx->id));
    sn_set(ctx, out, "name", ctx->name.at == NULL ? sn_null(ctx) : sn_string(ctx, ctx->name));
    sn_set(ctx, out, "address", sn_string(ctx, ctx->address));
    sn_set(ctx, out, "path", sn_string(ctx, ctx->path));
    sn_set(ctx, out, "abi", sn_int(ctx, SN_ABI));
    sn_set(ctx, out, "attempt", sn_int(ctx, ctx->attempt));
    sn_set(ctx, out, "iteration", sn_int(ctx, ctx->iteration));
    sn_set(ctx, out, "run", sn_string(ctx, ctx->run));
    sn_set(ctx, out, "sentinel", sn_string(ctx, ctx->sentinel));
    sn_set(ctx, out, "workspace", sn_string(ctx, ctx->workspace));
    sn_set(ctx, out, "key", sn_string(ctx, ctx->key));
    sn_set(ctx, out, "state", ctx->state);
    if (ctx->has_retry) {
        sn_value *retry = sn_object(ctx);
        sn_set(ctx, retry, "attempts", sn_int(ctx, ctx->retry_attempts));
        sn_set(ctx, retry, "code", sn_string(ctx, sn_str(sn_code_name(ctx->retry_error.code))));
        sn_set(ctx, retry, "category", sn_string(ctx, ctx->retry_category));
        sn_set(ctx, out, "retry", retry);
    }
    return out;
}

static void check_echo(sn_ctx *ctx, const sn_value *fields) {
    if (sn_same(sn_text_of(sn_get(fields, "echo")), sn_str("bad"))) sn_problem(ctx, "echo", "is bad", "use good");
}

static const sn_value *fail(sn_ctx *ctx) {
    sn_text panic = sn_text_of(sn_get(ctx->fields, "panic"));
    if (panic.at != NULL) sn_panic(panic.at);
    if (!sn_error_of(sn_get(ctx->fields, "error"), &ctx->error)) sn_bad_field(ctx, "error", "is not given");
    return NULL;
}

static const sn_value *blocks(sn_ctx *ctx) {
    int64_t count;
    sn_block_options options = {0};
    if (!sn_int_field(ctx, "count", 0, 1, &count) || !sn_int_field(ctx, "concurrency", 0, 0, &options.concurrency) ||
        !sn_bool_field(ctx, "failFast", false, &options.fail_fast) || !sn_bool_field(ctx, "drain", false, &options.drain) ||
        !sn_bool_field(ctx, "isolated", false, &options.isolated) || !sn_int_field(ctx, "total", 0, 0, &options.total))
        return NULL;
    sn_block *wanted = sn_alloc(ctx, (size_t)count * sizeof *wanted);
    sn_block_result *results = sn_alloc(ctx, (size_t)count * sizeof *results);
    if (wanted == NULL || results == NULL) return NULL;
    for (int64_t i = 0; i < count; i++) {
        sn_value *vars = sn_object(ctx);
        sn_set(ctx, vars, "i", sn_int(ctx, i));
        wanted[i] = (sn_block){.field = "steps", .vars = vars};
    }
    if (!sn_run_blocks(ctx, wanted, (size_t)count, &options, results)) return NULL;
    sn_value *list = sn_list(ctx), *out = sn_object(ctx);
    for (int64_t i = 0; i < count; i++) {
        sn_value *shown = sn_object(ctx);
        sn_set(ctx, shown, "success", sn_bool(ctx, results[i].success));
        sn_set(ctx, shown, "output", results[i].output == NULL ? sn_null(ctx) : results[i].output);
        if (!results[i].success) {
            sn_value *error = sn_object(ctx);
            sn_set(ctx, error, "code", sn_string(ctx, sn_str(sn_code_name(results[i].error.code))));
            sn_set(ctx, error, "message", sn_string(ctx, results[i].error.message));
            sn_set(ctx, shown, "error", error);
        }
        if (results[i].skipped) sn_set(ctx, shown, "skipped", sn_bool(ctx, true));
        sn_push(ctx, list, shown);
    }
    sn_set(ctx, out, "blocks", list);
    sn_set(ctx, out, "steps", sn_int(ctx, sn_steps(ctx, "steps")));
    return out;
}

static const sn_value *pages(sn_ctx *ctx) {
    int64_t count;
    if (!sn_int_field(ctx, "pages", 0, 0, &count)) return NULL;
    int64_t from = sn_int_or(sn_get(ctx->state, "next"), 0), sum = sn_int_or(sn_get(ctx->state, "sum"), 0);
    for (int64_t page = from; page < count; page++) {
        sn_mark mark = sn_here(ctx);
        sn_info(ctx, sn_format(ctx, "page %lld", (long long)page));
        sn_value *params = sn_object(ctx);
        sn_set(ctx, params, "page", sn_int(ctx, page));
        const sn_value *result = sn_command(ctx, "kit/page", params);
        if (result == NULL) return NULL;
        sum += sn_int_or(sn_get(result, "value"), 0);
        sn_value *state = sn_object(ctx);
        sn_set(ctx, state, "next", sn_int(ctx, page + 1));
        sn_set(ctx, state, "sum", sn_int(ctx, sum));
        if (!sn_checkpoint(ctx, state)) return NULL;
        sn_back_to(ctx, mark);
    }
    sn_value *out = sn_object(ctx);
    sn_set(ctx, out, "sum", sn_int(ctx, sum));
    sn_set(ctx, out, "from", sn_int(ctx, from));
    return out;
}

#define OBJECT(properties, required) \
    "{\"type\":\"object\",\"properties\":{" properties "},\"required\":[" required "],\"additionalProperties\":false}"
#define PROPERTY(name, type) "\"" name "\":{\"type\":\"" type "\"}"

static const sn_step steps[] = {
    {.type = "kit_echo", .summary = "Gives back its input.", .fields = OBJECT("\"echo\":{}", "\"echo\""), .run = echo, .check = check_echo,
     .infer = (const char *const[]){"echo", NULL}, .aliases = (const char *const[]){"say", "echo", NULL}, .read_only = true,
     .output = "{\"type\":\"object\"}", .provides = {.as = "command", .name = "conformance/echo"}},
    {.type = "kit_fail", .summary = "Ends with an error.", .fields = OBJECT(PROPERTY("error", "object") "," PROPERTY("panic", "string"), ""), .run = fail},
    {.type = "kit_call", .summary = "Makes one host call.", .run = call,
     .fields = OBJECT(PROPERTY("call", "string") "," PROPERTY("args", "object") "," PROPERTY("catch", "boolean"), "\"call\",\"args\"")},
    {.type = "kit_blocks", .summary = "Runs its steps several times.", .run = blocks,
     .fields = OBJECT("\"steps\":{\"type\":\"array\",\"x-sentinel\":\"steps\"}," PROPERTY("count", "integer") "," PROPERTY("concurrency", "integer") ","
                      PROPERTY("failFast", "boolean") "," PROPERTY("drain", "boolean") "," PROPERTY("isolated", "boolean") ","
                      PROPERTY("total", "integer"), "\"steps\"")},
    {.type = "kit_pages", .summary = "Goes through pages with checkpoints.", .fields = OBJECT(PROPERTY("pages", "integer"), "\"pages\""), .run = pages},
};

static const sn_permission permissions[] = {
    {"command", SN_NAMES("*"), "to call the commands that the kit names"},
    {"llm", NULL, "to make the turns that the kit names"},
    {"watch", NULL, "to watch the executions that the kit names"},
    {"spawn", SN_NAMES("*"), "to start the sentinels that the kit names"},
    {"emit", NULL, "to publish the events that the kit names"},
    {"http", SN_NAMES("*.example.com"), "to make the requests that the kit names"},
    {"folder", SN_NAMES("data:rw"), "to read and write the files that the kit names"},
    {"secret", SN_NAMES("TOKEN"), "to send it with requests"},
    {"provide", SN_NAMES("command"), "to be called by name"},
};

SN_PLUGIN(.name = "conformance", .version = "1.0.0", .steps = steps, .step_count = SN_COUNT(steps), .permissions = permissions, .permission_count = SN_COUNT(permissions))
