/* Turns of language models, A6.4. */
#include "internal.h"

SN_IMPORT(sentinel_llm)

static sn_value *messages(sn_ctx *ctx, const sn_message *at, size_t count) {
    sn_value *list = sn_list(ctx);
    for (size_t i = 0; i < count; i++) {
        const sn_message *m = &at[i];
        sn_value *v = sn_object(ctx);
        sn_set_str(ctx, v, "role", m->is_tool ? "tool" : "user");
        sn_set_text(ctx, v, "content", m->content.at == NULL ? sn_str("") : m->content);
        if (m->is_tool) {
            sn_set_text(ctx, v, "toolCallId", m->tool_call_id);
            sn_set_text(ctx, v, "name", m->name);
            sn_set_true(ctx, v, "isError", m->is_error);
        }
        sn_push(ctx, list, v);
    }
    return list;
}

/* An offset of 0 is written too: both are required. */
static sn_value *replacements(sn_ctx *ctx, const sn_turn *turn) {
    if (turn->replace_count == 0) return NULL;
    sn_value *list = sn_list(ctx);
    for (size_t i = 0; i < turn->replace_count; i++) {
        const sn_replacement *r = &turn->replace[i];
        sn_value *v = sn_object(ctx);
        sn_set(ctx, v, "from", sn_int(ctx, r->from));
        sn_set(ctx, v, "to", sn_int(ctx, r->to));
        sn_set(ctx, v, "with", messages(ctx, r->with, r->with_count));
        sn_push(ctx, list, v);
    }
    return list;
}

/* An array, for access by index. */
static bool tool_calls(sn_ctx *ctx, const sn_value *list, sn_reply *out) {
    out->tool_call_count = sn_count(list);
    sn_tool_call *calls = sn_alloc(ctx, out->tool_call_count * sizeof *calls);
    if (calls == NULL) return false;
    out->tool_calls = calls;
    for (const sn_item *item = sn_items(list); item != NULL; item = item->next, calls++) {
        *calls = (sn_tool_call){
            .id = sn_text_of(sn_get(item->value, "id")),
            .name = sn_text_of(sn_get(item->value, "name")),
            .arguments = sn_get(item->value, "arguments"),
        };
    }
    return true;
}

/* Missing texts and numbers that are 0 are omitted from the request. */
bool sn_llm(sn_ctx *ctx, const sn_turn *turn, sn_reply *out) {
    sn_value *request = sn_object(ctx);
    sn_set_text(ctx, request, "conversation", turn->conversation);
    sn_set(ctx, request, "append", messages(ctx, turn->append, turn->append_count));
    sn_set_text(ctx, request, "system", turn->system);
    sn_set_true(ctx, request, "context", turn->context);
    sn_set_text(ctx, request, "model", turn->model);
    sn_set(ctx, request, "temperature", turn->temperature);
    sn_set_int(ctx, request, "maxTokens", turn->max_tokens);
    sn_set(ctx, request, "tools", turn->tools);
    sn_set(ctx, request, "schema", turn->schema);
    sn_set(ctx, request, "replace", replacements(ctx, turn));
    sn_set_true(ctx, request, "aside", turn->aside);
    const sn_value *answer = sn_call(ctx, "sentinel_llm", sentinel_llm, request), *usage = sn_get(answer, "usage");
    if (answer == NULL) return false;
    *out = (sn_reply){
        .conversation = sn_text_of(sn_get(answer, "conversation")),
        .text = sn_text_of(sn_get(answer, "text")),
        .json = sn_get(answer, "json"),
        .problems = sn_get(answer, "problems"),
        .finish = sn_text_of(sn_get(answer, "finish")),
        .input_limit = sn_int_or(sn_get(answer, "inputLimit"), 0),
        .input_tokens = sn_int_or(sn_get(usage, "inputTokens"), 0),
        .output_tokens = sn_int_or(sn_get(usage, "outputTokens"), 0),
        .calls = sn_int_or(sn_get(usage, "calls"), 1),
        .cost_usd = sn_get(usage, "costUsd"),
        .provider = sn_text_of(sn_get(answer, "provider")),
        .model = sn_text_of(sn_get(answer, "model")),
    };
    return tool_calls(ctx, sn_get(answer, "toolCalls"), out);
}
