/* kit_call: each host function through its typed wrapper, with the answer rebuilt
 * from the result of the wrapper. NULL is an error, as everywhere. */
#include "conformance.h"

typedef const sn_value *(*caller)(sn_ctx *ctx, const sn_value *args);

static sn_text text(const sn_value *args, const char *name) { return sn_text_of(sn_get(args, name)); }

static const char *str(const sn_value *args, const char *name) { return text(args, name).at == NULL ? "" : text(args, name).at; }

static void set_text(sn_ctx *ctx, sn_value *v, const char *name, sn_text t) { sn_set(ctx, v, name, sn_string(ctx, t)); }

static void set_int(sn_ctx *ctx, sn_value *v, const char *name, int64_t n) { sn_set(ctx, v, name, sn_int(ctx, n)); }

static void set_bool(sn_ctx *ctx, sn_value *v, const char *name, bool b) { sn_set(ctx, v, name, sn_bool(ctx, b)); }

static const sn_value *empty_if(sn_ctx *ctx, bool ok) { return ok ? sn_object(ctx) : NULL; }

static const sn_value *command(sn_ctx *ctx, const sn_value *args) {
    if (sn_same(text(args, "by"), sn_str("model"))) return sn_tool_command(ctx, str(args, "command"), sn_get(args, "params"), sn_get(args, "tools"));
    return sn_command(ctx, str(args, "command"), sn_get(args, "params"));
}

static const sn_message *messages_of(sn_ctx *ctx, const sn_value *list) {
    sn_message *messages = sn_alloc(ctx, sn_count(list) * sizeof *messages), *m = messages;
    if (messages == NULL) return NULL;
    for (const sn_item *item = sn_items(list); item != NULL; item = item->next, m++) {
        *m = (sn_message){
            .content = text(item->value, "content"),
            .is_tool = sn_same(text(item->value, "role"), sn_str("tool")),
            .tool_call_id = text(item->value, "toolCallId"),
            .name = text(item->value, "name"),
            .is_error = sn_bool_or(sn_get(item->value, "isError"), false),
        };
    }
    return messages;
}

static const sn_value *llm(sn_ctx *ctx, const sn_value *args) {
    const sn_value *append = sn_get(args, "append"), *replace = sn_get(args, "replace");
    const sn_message *messages = messages_of(ctx, append);
    sn_replacement *replacements = sn_alloc(ctx, sn_count(replace) * sizeof *replacements), *r = replacements;
    if (messages == NULL || replacements == NULL) return NULL;
    for (const sn_item *item = sn_items(replace); item != NULL; item = item->next, r++) {
        const sn_value *with = sn_get(item->value, "with");
        *r = (sn_replacement){
            .from = sn_int_or(sn_get(item->value, "from"), 0),
            .to = sn_int_or(sn_get(item->value, "to"), 0),
            .with = messages_of(ctx, with),
            .with_count = sn_count(with),
        };
    }
    sn_turn turn = {
        .conversation = text(args, "conversation"),
        .append = messages,
        .append_count = sn_count(append),
        .system = text(args, "system"),
        .context = sn_bool_or(sn_get(args, "context"), false),
        .model = text(args, "model"),
        .temperature = sn_get(args, "temperature"),
        .max_tokens = sn_int_or(sn_get(args, "maxTokens"), 0),
        .tools = sn_get(args, "tools"),
        .schema = sn_get(args, "schema"),
        .replace = replacements,
        .replace_count = sn_count(replace),
        .aside = sn_bool_or(sn_get(args, "aside"), false),
    };
    sn_reply reply;
    if (!sn_llm(ctx, &turn, &reply)) return NULL;
    sn_value *out = sn_object(ctx), *usage = sn_object(ctx), *calls = sn_list(ctx);
    for (size_t i = 0; i < reply.tool_call_count; i++) {
        sn_value *v = sn_object(ctx);
        set_text(ctx, v, "id", reply.tool_calls[i].id);
        set_text(ctx, v, "name", reply.tool_calls[i].name);
        sn_set(ctx, v, "arguments", reply.tool_calls[i].arguments);
        sn_push(ctx, calls, v);
    }
    set_int(ctx, usage, "inputTokens", reply.input_tokens);
    set_int(ctx, usage, "outputTokens", reply.output_tokens);
    set_int(ctx, usage, "calls", reply.calls);
    sn_set(ctx, usage, "costUsd", reply.cost_usd);
    set_text(ctx, out, "conversation", reply.conversation);
    set_text(ctx, out, "text", reply.text);
    sn_set(ctx, out, "json", reply.json);
    sn_set(ctx, out, "problems", reply.problems);
    sn_set(ctx, out, "toolCalls", calls);
    set_text(ctx, out, "finish", reply.finish);
    set_int(ctx, out, "inputLimit", reply.input_limit);
    sn_set(ctx, out, "usage", usage);
    set_text(ctx, out, "provider", reply.provider);
    set_text(ctx, out, "model", reply.model);
    return out;
}

static const sn_value *watch(sn_ctx *ctx, const sn_value *args) {
    sn_watch wanted = {.execution = text(args, "executionId"), .rules = sn_get(args, "rules"), .until = text(args, "until")};
    sn_watched got;
    if (!sn_watch_lines(ctx, &wanted, &got)) return NULL;
    sn_value *out = sn_object(ctx), *lines = sn_list(ctx);
    for (size_t i = 0; i < got.line_count; i++) {
        sn_value *v = sn_object(ctx);
        set_text(ctx, v, "text", got.lines[i].text);
        set_text(ctx, v, "classification", got.lines[i].classification);
        set_int(ctx, v, "lineNumber", got.lines[i].number);
        set_text(ctx, v, "stream", got.lines[i].stream);
        sn_set(ctx, v, "timestamp", got.lines[i].timestamp);
        sn_push(ctx, lines, v);
    }
    set_text(ctx, out, "executionId", got.execution);
    sn_set(ctx, out, "lines", lines);
    set_text(ctx, out, "text", got.text);
    set_bool(ctx, out, "finished", got.finished);
    if (got.has_exit_code) set_int(ctx, out, "exitCode", got.exit_code);
    set_int(ctx, out, "dropped", got.dropped);
    set_int(ctx, out, "cursor", got.cursor);
    return out;
}

static const sn_value *eval(sn_ctx *ctx, const sn_value *args) {
    const sn_value *value;
    bool truthy;
    if (!sn_eval(ctx, str(args, "expression"), sn_get(args, "vars"), &value, &truthy)) return NULL;
    sn_value *out = sn_object(ctx);
    sn_set(ctx, out, "value", value);
    set_bool(ctx, out, "truthy", truthy);
    return out;
}

static const sn_value *var_get(sn_ctx *ctx, const sn_value *args) {
    const sn_value *value;
    if (!sn_get_var(ctx, str(args, "name"), &value)) return NULL;
    sn_value *out = sn_object(ctx);
    sn_set(ctx, out, "value", value);
    set_bool(ctx, out, "found", value != NULL);
    return out;
}

static const sn_value *var_set(sn_ctx *ctx, const sn_value *args) { return empty_if(ctx, sn_set_vars(ctx, sn_get(args, "values"))); }

static const sn_value *spawn(sn_ctx *ctx, const sn_value *args) {
    sn_text run, sentinel;
    const sn_value *inputs = sn_get(args, "inputs");
    bool ok = sn_given(sn_get(args, "field")) ? sn_spawn(ctx, str(args, "field"), inputs, &run, &sentinel)
                                              : sn_spawn_sentinel(ctx, str(args, "sentinel"), inputs, &run, &sentinel);
    if (!ok) return NULL;
    sn_value *out = sn_object(ctx);
    set_text(ctx, out, "run", run);
    set_text(ctx, out, "sentinel", sentinel);
    return out;
}

static const sn_value *emit(sn_ctx *ctx, const sn_value *args) {
    sn_text id;
    if (!sn_emit(ctx, str(args, "event"), sn_get(args, "data"), &id)) return NULL;
    sn_value *out = sn_object(ctx);
    set_text(ctx, out, "id", id);
    return out;
}

static const sn_value *wait(sn_ctx *ctx, const sn_value *args) {
    const sn_value *ask = sn_get(args, "decision");
    sn_wait wanted = {
        .duration_ms = sn_int_or(sn_get(args, "durationMs"), 0),
        .until = text(args, "until"),
        .event = text(args, "event"),
        .run = text(args, "run"),
        .prompt = text(ask, "prompt"),
        .approvers = sn_get(ask, "approvers"),
        .call_kind = text(ask, "callKind"),
        .timeout_ms = sn_int_or(sn_get(args, "timeoutMs"), 0),
    };
    sn_waited got;
    if (!sn_wait_for(ctx, &wanted, &got)) return NULL;
    sn_value *out = sn_object(ctx);
    set_bool(ctx, out, "timedOut", got.timed_out);
    sn_set(ctx, out, "event", got.event);
    sn_set(ctx, out, "result", got.result);
    if (got.decided) {
        sn_value *decision = sn_object(ctx);
        set_text(ctx, decision, "verdict", sn_str(got.approved ? "approve" : "reject"));
        set_text(ctx, decision, "by", got.by);
        set_text(ctx, decision, "at", got.at);
        set_text(ctx, decision, "comment", got.comment);
        sn_set(ctx, out, "decision", decision);
    }
    return out;
}

static const sn_value *checkpoint(sn_ctx *ctx, const sn_value *args) { return empty_if(ctx, sn_checkpoint(ctx, sn_get(args, "state"))); }

/* An invalid base64 text is a fault of the host. */
static bool whole(sn_ctx *ctx, bool base64, sn_text t) {
    return !base64 || sn_unbase64(ctx, t).at != NULL || sn_fail(ctx, SN_INTERNAL, "an answer is not base64") != NULL;
}

static const sn_value *http(sn_ctx *ctx, const sn_value *args) {
    sn_request request = {
        .method = text(args, "method"),
        .url = text(args, "url"),
        .headers = sn_get(args, "headers"),
        .body = text(args, "body"),
        .body_secrets = sn_bool_or(sn_get(args, "bodySecrets"), false),
        .timeout_ms = sn_int_or(sn_get(args, "timeoutMs"), 0),
    };
    sn_response got;
    if (!sn_http(ctx, &request, &got) || !whole(ctx, got.base64, got.body)) return NULL;
    sn_value *out = sn_object(ctx);
    set_int(ctx, out, "status", got.status);
    sn_set(ctx, out, "headers", got.headers);
    set_text(ctx, out, "body", got.body);
    if (got.base64) set_text(ctx, out, "encoding", sn_str("base64"));
    set_bool(ctx, out, "truncated", got.truncated);
    return out;
}

static const sn_value *file_read(sn_ctx *ctx, const sn_value *args) {
    sn_part part;
    int64_t offset = sn_int_or(sn_get(args, "offset"), 0), length = sn_int_or(sn_get(args, "length"), 0);
    if (!sn_read_file(ctx, str(args, "folder"), str(args, "path"), offset, length, &part) || !whole(ctx, part.base64, part.text)) return NULL;
    sn_value *out = sn_object(ctx);
    set_text(ctx, out, "text", part.text);
    if (part.base64) set_text(ctx, out, "encoding", sn_str("base64"));
    set_int(ctx, out, "size", part.size);
    set_bool(ctx, out, "truncated", part.truncated);
    return out;
}

static const sn_value *file_write(sn_ctx *ctx, const sn_value *args) {
    int64_t size;
    const char *folder = str(args, "folder"), *path = str(args, "path");
    bool ok;
    if (sn_given(sn_get(args, "encoding"))) {
        sn_text bytes = sn_unbase64(ctx, text(args, "text"));
        if (bytes.at == NULL) return sn_bad_field(ctx, "args.text", "want base64");
        ok = sn_write_bytes(ctx, folder, path, bytes, &size);
    } else {
        ok = sn_write_file(ctx, folder, path, text(args, "text"), &size);
    }
    if (!ok) return NULL;
    sn_value *out = sn_object(ctx);
    set_int(ctx, out, "size", size);
    return out;
}

static const sn_value *file_list(sn_ctx *ctx, const sn_value *args) {
    sn_listing got;
    if (!sn_list_files(ctx, str(args, "folder"), str(args, "path"), sn_int_or(sn_get(args, "offset"), 0), &got)) return NULL;
    sn_value *out = sn_object(ctx), *entries = sn_list(ctx);
    for (size_t i = 0; i < got.count; i++) {
        sn_value *v = sn_object(ctx);
        set_text(ctx, v, "name", got.entries[i].name);
        set_bool(ctx, v, "dir", got.entries[i].dir);
        set_int(ctx, v, "size", got.entries[i].size);
        sn_set(ctx, v, "modified", got.entries[i].modified);
        sn_push(ctx, entries, v);
    }
    sn_set(ctx, out, "entries", entries);
    set_bool(ctx, out, "truncated", got.truncated);
    return out;
}

static const sn_value *file_stat(sn_ctx *ctx, const sn_value *args) {
    sn_stat got;
    if (!sn_stat_file(ctx, str(args, "folder"), str(args, "path"), &got)) return NULL;
    sn_value *out = sn_object(ctx);
    set_bool(ctx, out, "exists", got.exists);
    set_bool(ctx, out, "dir", got.dir);
    set_int(ctx, out, "size", got.size);
    sn_set(ctx, out, "modified", got.modified);
    return out;
}

static const sn_value *file(sn_ctx *ctx, const sn_value *args) {
    static const struct {
        const char *op;
        caller call;
    } ops[] = {{"read", file_read}, {"write", file_write}, {"list", file_list}, {"stat", file_stat}};
    sn_text op = text(args, "op");
    for (size_t i = 0; i < SN_COUNT(ops); i++) {
        if (sn_same(op, sn_str(ops[i].op))) return ops[i].call(ctx, args);
    }
    if (sn_same(op, sn_str("remove"))) return empty_if(ctx, sn_remove_file(ctx, str(args, "folder"), str(args, "path")));
    return sn_bad_field(ctx, "args.op", "unknown operation \"%s\"", str(args, "op"));
}

static const sn_value *log_line(sn_ctx *ctx, const sn_value *args) { return empty_if(ctx, sn_log(ctx, str(args, "level"), text(args, "message"))); }

static const sn_value *now(sn_ctx *ctx, const sn_value *args) {
    (void)args;
    int64_t unix_ms;
    sn_text iso;
    if (!sn_now(ctx, &unix_ms, &iso)) return NULL;
    sn_value *out = sn_object(ctx);
    set_int(ctx, out, "unixMs", unix_ms);
    set_text(ctx, out, "iso", iso);
    return out;
}

static const struct {
    const char *name;
    caller call;
} callers[] = {
    {"command", command}, {"llm", llm},   {"watch", watch}, {"eval", eval},   {"var_get", var_get}, {"var_set", var_set}, {"spawn", spawn}, {"emit", emit},
    {"wait", wait},       {"checkpoint", checkpoint}, {"http", http},   {"file", file}, {"log", log_line},    {"now", now},
};

const sn_value *call(sn_ctx *ctx) {
    sn_text name;
    bool catch;
    if (!sn_text_field(ctx, "call", &name) || !sn_bool_field(ctx, "catch", false, &catch)) return NULL;
    for (size_t i = 0; i < SN_COUNT(callers); i++) {
        if (!sn_same(name, sn_str(callers[i].name))) continue;
        const sn_value *answer = callers[i].call(ctx, sn_get(ctx->fields, "args"));
        if (answer == NULL && !catch) return NULL;
        sn_value *out = sn_object(ctx);
        sn_set(ctx, out, answer == NULL ? "error" : "ok", answer == NULL ? sn_error_value(ctx, &ctx->error) : answer);
        return out;
    }
    return sn_bad_field(ctx, "call", "unknown host call \"%.*s\"", (int)name.n, name.at);
}
