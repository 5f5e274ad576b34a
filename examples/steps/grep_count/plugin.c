/* The step grep_count: how often texts are in a text, or in the files of a
 * folder that the operator granted. */
#include <string.h>

#include "count.h"

static const char fields[] =
    "{"
    "  \"type\": \"object\","
    "  \"properties\": {"
    "    \"patterns\": {\"type\": \"array\", \"minItems\": 1, \"maxItems\": 50, \"items\": {\"type\": \"string\", \"minLength\": 1}, \"description\": \"What to count.\"},"
    "    \"text\": {\"type\": \"string\", \"description\": \"Where to count; or path.\"},"
    "    \"path\": {\"type\": \"string\", \"description\": \"A file, or a folder with all below it, in the granted folder data; empty for all of that.\"},"
    "    \"files\": {\"type\": \"string\", \"default\": \"*\", \"description\": \"With a folder: only files whose name fits, *.log.\"},"
    "    \"glob\": {\"type\": \"boolean\", \"default\": false, \"description\": \"Patterns are globs (*, ?, [a-z]) for whole lines, not plain texts.\"},"
    "    \"ignoreCase\": {\"type\": \"boolean\", \"default\": false, \"description\": \"A to Z count as a to z.\"},"
    "    \"word\": {\"type\": \"boolean\", \"default\": false, \"description\": \"Only where a pattern is no part of a longer word.\"},"
    "    \"limit\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 1000, \"default\": 20, \"description\": \"How many lines are shown; all are counted.\"}"
    "  },"
    "  \"required\": [\"patterns\"],"
    "  \"additionalProperties\": false"
    "}";

/* What the fields alone do not say. A NULL field is no problem. */
typedef struct {
    const char *field, *message, *hint;
} fault;

static fault find_fault(const sn_value *f) {
    bool text = sn_given(sn_get(f, "text")), path = sn_given(sn_get(f, "path"));
    if (text && path) return (fault){"path", "is given beside text", "count in one of them"};
    if (!text && !path) return (fault){"text", "is not given, and neither is path", "give a text, or the path of a file in the granted folder"};
    if (text && sn_given(sn_get(f, "files"))) return (fault){"files", "counts only with path", NULL};
    if (sn_bool_or(sn_get(f, "glob"), false) && sn_bool_or(sn_get(f, "word"), false))
        return (fault){"word", "has no meaning for globs, which are for whole lines", NULL};
    return (fault){0};
}

static void check(sn_ctx *ctx, const sn_value *f) {
    fault bad = find_fault(f);
    if (bad.field != NULL) sn_problem(ctx, bad.field, bad.message, bad.hint);
}

/* Reads the fields; false: ctx->error says what is wrong with them. */
static bool prepare(sn_ctx *ctx, tally *t) {
    fault bad = find_fault(ctx->fields);
    if (bad.field != NULL) {
        sn_bad_field(ctx, bad.field, "%s", bad.message);
        if (!ctx->spent) ctx->error.hint = sn_str(bad.hint);
        return false;
    }
    const sn_value *patterns = sn_get(ctx->fields, "patterns");
    t->pattern_count = sn_count(patterns);
    t->patterns = sn_alloc(ctx, t->pattern_count * sizeof *t->patterns);
    t->shown = sn_list(ctx);
    if (t->patterns == NULL) return false;
    size_t i = 0;
    for (const sn_item *item = sn_items(patterns); item != NULL; item = item->next) t->patterns[i++].pattern = sn_text_of(item->value);
    return sn_bool_field(ctx, "glob", false, &t->how.glob) && sn_bool_field(ctx, "ignoreCase", false, &t->how.ignore_case) &&
           sn_bool_field(ctx, "word", false, &t->how.word) && sn_int_field(ctx, "limit", 0, 20, &t->limit);
}

static const sn_value *report(sn_ctx *ctx, const tally *t) {
    sn_value *out = sn_object(ctx), *patterns = sn_list(ctx);
    int64_t count = 0;
    sn_text text = sn_str("");
    for (size_t i = 0; i < t->pattern_count; i++) {
        const found *f = &t->patterns[i];
        sn_value *v = sn_object(ctx);
        sn_set(ctx, v, "pattern", sn_string(ctx, f->pattern));
        sn_set(ctx, v, "count", sn_int(ctx, f->count));
        sn_set(ctx, v, "lines", sn_int(ctx, f->lines));
        sn_push(ctx, patterns, v);
        count += f->count;
        text = sn_format(ctx, "%.*s%s%lld %.*s", (int)text.n, text.at, i == 0 ? "" : "\n", (long long)f->count, (int)f->pattern.n, f->pattern.at);
    }
    sn_set(ctx, out, "count", sn_int(ctx, count));
    sn_set(ctx, out, "lines", sn_int(ctx, t->lines));
    sn_set(ctx, out, "patterns", patterns);
    sn_set(ctx, out, "matches", t->shown);
    sn_set(ctx, out, "truncated", sn_bool(ctx, t->truncated));
    if (sn_given(sn_get(ctx->fields, "path"))) {
        sn_set(ctx, out, "files", sn_int(ctx, t->files));
        sn_set(ctx, out, "skipped", sn_int(ctx, t->skipped));
    }
    sn_set(ctx, out, "text", sn_string(ctx, text));
    return out;
}

static const sn_value *run(sn_ctx *ctx) {
    tally t = {0};
    if (!prepare(ctx, &t)) return NULL;
    sn_text path, glob;
    if (!sn_given(sn_get(ctx->fields, "path"))) {
        sn_text text;
        if (!sn_text_field(ctx, "text", &text)) return NULL;
        search(ctx, &t, (sn_text){NULL, 0}, text);
        return report(ctx, &t);
    }
    if (!sn_text_field(ctx, "path", &path) || !sn_text_field(ctx, "files", &glob)) return NULL;
    if (!search_files(ctx, &t, path.at, glob.n == 0 ? sn_str("*") : glob)) return NULL;
    return report(ctx, &t);
}

static const sn_step steps[] = {
    {.type = "grep_count", .summary = "Counts texts in a text or in the files of a granted folder.", .fields = fields, .run = run, .check = check, .read_only = true},
};

static const sn_permission permissions[] = {{"folder", SN_NAMES("data"), "to count in the files that the field path names; a step with text needs none"}};

SN_PLUGIN(.name = "grep_count", .version = "1.0.0", .steps = steps, .step_count = SN_COUNT(steps), .permissions = permissions, .permission_count = SN_COUNT(permissions))
