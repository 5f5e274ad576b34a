/* The step plugin {{name}}: it provides the step type {{name}}. */
#include <string.h>

#include "sdk/sentinel.h"

/* The JSON Schema of the step's own fields. Editors use it for completion, and the
 * host checks definitions against it. */
static const char fields[] =
    "{"
    "  \"type\": \"object\","
    "  \"properties\": {"
    "    \"text\": {\"type\": \"string\", \"description\": \"The text to change.\"},"
    "    \"times\": {\"type\": \"integer\", \"minimum\": 1, \"default\": 1, \"description\": \"How often the mark is put behind it.\"}"
    "  },"
    "  \"required\": [\"text\"],"
    "  \"additionalProperties\": false"
    "}";

/* Executes one step. The result becomes the value of outputTo. */
static const sn_value *run(sn_ctx *ctx) {
    sn_text text;
    int64_t times;
    if (!sn_text_field(ctx, "text", &text) || !sn_int_field(ctx, "times", 1, 1, &times)) return NULL;
    if (times > 100) return sn_bad_field(ctx, "times", "want at most 100");
    sn_info(ctx, sn_format(ctx, "changing %.*s", (int)text.n, text.at));

    size_t n = text.n + (size_t)times;
    char *loud = sn_alloc(ctx, n + 1);
    if (loud == NULL) return NULL;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.at[i];
        loud[i] = c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
    }
    memset(loud + text.n, '!', (size_t)times);

    sn_value *out = sn_object(ctx);
    sn_set(ctx, out, "text", sn_string(ctx, (sn_text){loud, n}));
    return out;
}

static const sn_step steps[] = {
    {.type = "{{name}}", .summary = "Writes a text in capital letters.", .fields = fields, .run = run, .read_only = true},
};

/* The description of this module, which the host reads first. */
SN_PLUGIN(.name = "{{name}}", .version = "0.1.0", .steps = steps, .step_count = SN_COUNT(steps))
