/* The step as plain C, with a host that is played here:
 *
 *     cc -I. -o /tmp/{{name}} tests/native.c plugin.c sdk/[a-z]*.c -lm && /tmp/{{name}}
 */
#include <stdio.h>

#include "sdk/sentinel.h"

static int failures;

/* Answers every call with nothing; a log line is all that this plugin asks for. */
static sn_text answer(void *user, sn_ctx *ctx, const char *function, sn_text request) {
    (void)user, (void)ctx, (void)function, (void)request;
    return sn_str("{\"ok\":{}}");
}

/* Runs one step and compares what it gives: its output, or the field that its
 * error names. */
static void expect(const char *fields, const char *want) {
    sn_ctx ctx;
    sn_open(&ctx, answer, NULL);
    sn_text input = sn_format(&ctx, "{\"abi\":1,\"step\":{\"type\":\"{{name}}\",\"fields\":%s}}", fields);
    sn_text output = sn_run(&ctx, &sn_this_plugin, input);
    sn_text got = output.at != NULL ? output : ctx.error.field;
    if (!sn_same(got, sn_str(want))) {
        printf("%s: got %.*s, want %s\n", fields, (int)got.n, got.at, want);
        failures++;
    }
    sn_close(&ctx);
}

int main(void) {
    expect("{\"text\":\"hey\",\"times\":3}", "{\"output\":{\"text\":\"HEY!!!\"}}");
    expect("{\"text\":\"hey\",\"times\":1000}", "times");

    sn_ctx ctx;
    sn_open(&ctx, NULL, NULL);
    if (sn_describe(&ctx, &sn_this_plugin).at == NULL) {
        printf("%s\n", ctx.error.message.at);
        failures++;
    }
    sn_close(&ctx);
    return failures > 0;
}
