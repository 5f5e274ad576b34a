/* The tests of the SDK that run natively, without a host:
 *
 *     cc -std=c11 -fsanitize=address,undefined -o /tmp/sdk tests/sdk.c sentinel/[a-z]*.c -lm && /tmp/sdk
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../sentinel/sentinel.h"

static int failures;

#define CHECK(condition, ...)                          \
    do {                                               \
        if (!(condition)) {                            \
            printf("%s:%d: ", __FILE__, __LINE__);     \
            printf(__VA_ARGS__);                       \
            printf("\n");                              \
            failures++;                                \
        }                                              \
    } while (0)

static bool is(sn_text t, const char *want) { return t.at != NULL && sn_same(t, sn_str(want)); }

static sn_text copy(sn_ctx *ctx, const char *text) { return sn_copy(ctx, text, strlen(text)); }

static void json_comes_back_as_it_was(void) {
    static const char *const texts[] = {
        "null", "true", "[]", "{}", "0", "-0", "1.50", "1e400", "9007199254740993", "\"\"", "\"a\\\"\\\\\\n\\u0000\xc3\xa9\xf0\x9f\x98\x80\"",
        "{\"b\":1,\"a\":[{},[],{\"\":null}]}",
    };
    for (size_t i = 0; i < SN_COUNT(texts); i++) {
        sn_ctx ctx;
        sn_open(&ctx, NULL, NULL);
        sn_text got = sn_print(&ctx, sn_parse(&ctx, copy(&ctx, texts[i])));
        CHECK(is(got, texts[i]), "%s came back as %.*s", texts[i], (int)got.n, got.at);
        sn_close(&ctx);
    }
    sn_ctx ctx;
    sn_open(&ctx, NULL, NULL);
    const sn_value *v = sn_parse(&ctx, copy(&ctx, " [ 1 , { \"a\" : \"\\u00e9\\ud83d\\ude00\\ud83d\\/\" } ] "));
    CHECK(is(sn_print(&ctx, v), "[1,{\"a\":\"\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd/\"}]"), "escapes");
    sn_text odd = sn_print(&ctx, sn_string(&ctx, copy(&ctx, "a\xff\xc0\xaf\xed\xa0\x80z\x01")));
    CHECK(is(odd, "\"a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\\u0001\""), "text that is not UTF-8: %.*s", (int)odd.n, odd.at);
    sn_close(&ctx);
}

static void bad_json_is_refused_with_its_place(void) {
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "json byte 0: unexpected end"},
        {"[1", "json byte 2: expected , or ]"},
        {"[1,]", "json byte 3: expected a value"},
        {"{\"a\":1,}", "json byte 7: expected a key"},
        {"{\"a\" 1}", "json byte 5: expected :"},
        {"{\"a\":1,\"a\":2}", "json byte 13: duplicate key"},
        {"01", "json byte 0: expected a number"},
        {"1.", "json byte 0: expected a number"},
        {"1e+", "json byte 0: expected a number"},
        {"\"a", "json byte 2: string without an end"},
        {"\"\\", "json byte 2: unexpected end"},
        {"\"\\x\"", "json byte 2: unknown escape"},
        {"\"\\u12g4\"", "json byte 2: expected four hex digits"},
        {"\"\n\"", "json byte 1: control character in a string"},
        {"\"\xc3\"", "json byte 1: not UTF-8"},
        {"nul", "json byte 0: expected a value"},
        {"1 2", "json byte 2: text after the value"},
    };
    for (size_t i = 0; i < SN_COUNT(cases); i++) {
        sn_ctx ctx;
        sn_open(&ctx, NULL, NULL);
        const sn_value *v = sn_parse(&ctx, copy(&ctx, cases[i].text));
        CHECK(v == NULL && is(ctx.error.message, cases[i].why), "%s: %.*s, want %s", cases[i].text, (int)ctx.error.message.n, ctx.error.message.at, cases[i].why);
        sn_close(&ctx);
    }
}

static void depth_has_an_end(void) {
    char text[2 * (SN_MAX_DEPTH + 1) + 1];
    for (int n = SN_MAX_DEPTH; n <= SN_MAX_DEPTH + 1; n++) {
        memset(text, '[', (size_t)n);
        memset(text + n, ']', (size_t)n);
        text[2 * n] = 0;
        sn_ctx ctx;
        sn_open(&ctx, NULL, NULL);
        const sn_value *v = sn_parse(&ctx, sn_str(text));
        CHECK((v != NULL) == (n == SN_MAX_DEPTH), "%d deep", n);
        if (v != NULL) CHECK(is(sn_print(&ctx, v), text), "%d deep does not come back", n);
        sn_close(&ctx);
    }
    /* A value that contains itself is refused. */
    sn_ctx ctx;
    sn_open(&ctx, NULL, NULL);
    sn_value *self = sn_object(&ctx);
    sn_set(&ctx, self, "self", self);
    CHECK(sn_print(&ctx, self).at == NULL && ctx.error.code == SN_LIMIT, "a value in itself was printed");
    CHECK(!sn_equal(self, self), "a value in itself is equal to something");
    sn_close(&ctx);
}

/* Reading ends for every prefix and every changed byte of a text, and a value that
 * was read is the same after writing and reading it again. */
static void damaged_json_is_read_or_refused(void) {
    static const char text[] = "{\"a\":[1,-2.5e+10,true,null],\"b\":{\"\":\"x\\u00e9\\ud83d\\ude00\\n\"},\"c\":\"\xc3\xbc\"}";
    size_t n = sizeof text - 1;
    for (size_t at = 0; at < n; at++) {
        for (int byte = -1; byte < 256; byte++) {
            /* In memory of exactly that size, so that reads beyond it are detected. */
            size_t size = byte < 0 ? at : n;
            char *bytes = malloc(size + 1);
            if (bytes == NULL) exit(2);
            memcpy(bytes, text, size);
            if (byte >= 0) bytes[at] = (char)byte;
            char *exact = realloc(bytes, size == 0 ? 1 : size);
            sn_ctx ctx;
            sn_open(&ctx, NULL, NULL);
            const sn_value *v = sn_parse(&ctx, (sn_text){exact, size});
            CHECK(byte >= 0 || v == NULL, "%zu bytes of it are JSON", at);
            if (v != NULL) CHECK(sn_equal(v, sn_parse(&ctx, sn_print(&ctx, v))), "byte %zu as %d does not come back", at, byte);
            sn_close(&ctx);
            free(exact);
        }
    }
}

static void many_fields_are_no_matter(void) {
    sn_ctx ctx;
    sn_open(&ctx, NULL, NULL);
    for (int twice = 0; twice < 2; twice++) {
        char *text = malloc(40000 * 16);
        if (text == NULL) exit(2);
        char *p = text;
        *p++ = '{';
        for (int i = 0; i < 40000; i++) p += sprintf(p, "%s\"k%d\":%d", i > 0 ? "," : "", twice && i == 39999 ? 7 : i, i);
        strcpy(p, "}");
        const sn_value *v = sn_parse(&ctx, sn_str(text));
        CHECK((v == NULL) == (twice == 1), "40,000 fields, twice %d", twice);
        if (v != NULL) CHECK(sn_int_or(sn_get(v, "k39999"), 0) == 39999 && sn_equal(v, v), "40,000 fields are not found");
        free(text);
    }
    sn_close(&ctx);
}

static void numbers_are_what_they_stand_for(void) {
    static const struct {
        const char *a, *b;
        bool equal;
    } pairs[] = {
        {"1", "1.0", true}, {"1e2", "100", true}, {"0", "-0.0e5", true}, {"120", "1.2E+2", true}, {"0.001", "1e-3", true}, {"10.0100", "1001e-2", true},
        {"1", "-1", false}, {"9007199254740993", "9007199254740992", false}, {"1e400", "1e401", false}, {"1e99999999999999999999", "1e-99999999999999999999", false},
        {"10", "100", false}, {"1", "11", false},
    };
    sn_ctx ctx;
    sn_open(&ctx, NULL, NULL);
    for (size_t i = 0; i < SN_COUNT(pairs); i++) {
        bool equal = sn_equal(sn_number(&ctx, sn_str(pairs[i].a)), sn_number(&ctx, sn_str(pairs[i].b)));
        CHECK(equal == pairs[i].equal, "%s and %s: equal %d", pairs[i].a, pairs[i].b, equal);
    }
    static const struct {
        const char *text;
        bool whole;
        int64_t n;
    } whole[] = {
        {"12.0", true, 12}, {"1.2e1", true, 12}, {"-0.0", true, 0}, {"1.5", false, 0}, {"0.1", false, 0}, {"1e18", true, 1000000000000000000}, {"1e19", false, 0},
        {"9223372036854775807", true, INT64_MAX}, {"-9223372036854775808", true, INT64_MIN}, {"9223372036854775808", false, 0}, {"1e999999999999", false, 0},
        {"9999999999999999999", false, 0}, {"-120e-1", true, -12},
    };
    for (size_t i = 0; i < SN_COUNT(whole); i++) {
        int64_t n = 0;
        bool ok = sn_as_int(sn_number(&ctx, sn_str(whole[i].text)), &n);
        CHECK(ok == whole[i].whole && (!ok || n == whole[i].n), "%s: %d %lld", whole[i].text, ok, (long long)n);
    }
    static const double doubles[] = {0.1, -1.5, 1e300, 5e-324, 9007199254740991.0, 1e21, 1e-7, 1.0 / 3};
    for (size_t i = 0; i < SN_COUNT(doubles); i++) {
        double d = 0;
        CHECK(sn_as_double(sn_double(&ctx, doubles[i]), &d) && d == doubles[i], "%g came back as %g", doubles[i], d);
    }
    double d = 0;
    CHECK(is(sn_print(&ctx, sn_double(&ctx, 0.1)), "0.1"), "0.1");
    CHECK(sn_kind_of(sn_double(&ctx, NAN)) == SN_NULL && !sn_as_double(sn_number(&ctx, sn_str("1e400")), &d), "what no double is");
    CHECK(sn_number(&ctx, sn_str("0x1")) == NULL && sn_number(&ctx, sn_str("")) == NULL, "what no number is");
    sn_close(&ctx);
}

static void base64_comes_back(void) {
    sn_ctx ctx;
    sn_open(&ctx, NULL, NULL);
    for (size_t n = 0; n < 40; n++) {
        char bytes[40];
        for (size_t i = 0; i < n; i++) bytes[i] = (char)(i * 37 + n);
        CHECK(sn_same(sn_unbase64(&ctx, sn_base64(&ctx, (sn_text){bytes, n})), (sn_text){bytes, n}), "%zu bytes do not come back", n);
    }
    CHECK(is(sn_base64(&ctx, (sn_text){"\x00\xff", 2}), "AP8="), "AP8=");
    static const char *const bad[] = {"A", "AP8", "AP8==", "=", "====", "A===", "A*8=", "A=P8"};
    for (size_t i = 0; i < SN_COUNT(bad); i++) CHECK(sn_unbase64(&ctx, sn_str(bad[i])).at == NULL, "%s was read", bad[i]);
    sn_close(&ctx);
}

static void texts_are_formatted(void) {
    sn_ctx ctx;
    sn_open(&ctx, NULL, NULL);
    sn_text t = sn_format(&ctx, "%s|%.*s|%d|%lld|%zu|%%", "a", 2, "bcd", -7, (long long)INT64_MIN, (size_t)12);
    CHECK(is(t, "a|bc|-7|-9223372036854775808|12|%"), "%s", t.at);
    sn_close(&ctx);
}

/* --- A plugin that uses every call ------------------------------------- */

static const sn_value *probe(sn_ctx *ctx) {
    int64_t n;
    if (!sn_int_field(ctx, "n", 1, 7, &n)) return NULL;
    if (n == 98) return sn_null(ctx);
    if (n < 99) return n == 13 ? NULL : sn_int(ctx, n);
    const sn_value *result = sn_command(ctx, "code/read", sn_get(ctx->fields, "params"));
    return result == NULL ? NULL : sn_get(result, "lines") == NULL ? sn_string(ctx, sn_str("no lines")) : sn_get(result, "lines");
}

static void check(sn_ctx *ctx, const sn_value *fields) {
    if (sn_int_or(sn_get(fields, "n"), 0) == 13) sn_problem(ctx, "n", "brings bad luck", "use 14");
}

static const sn_step steps[] = {
    {.type = "probe", .summary = "Probes.", .fields = "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\"}}}", .run = probe, .check = check,
     .infer = (const char *const[]){"n", NULL}, .aliases = (const char *const[]){"m", "n", NULL}, .read_only = true},
};
static const sn_permission permissions[] = {{"command", SN_NAMES("code/*"), "to \"read\""}};
SN_PLUGIN(.name = "probe", .version = "1.2.3", .steps = steps, .step_count = 1, .permissions = permissions, .permission_count = 1)

static sn_text canned(void *user, sn_ctx *ctx, const char *function, sn_text request) {
    (void)function;
    (void)request;
    return copy(ctx, user);
}

/* Runs the probe with these fields and compares its output, or its error's code
 * and message. */
static void expect(const char *fields, const char *answer, const char *want) {
    sn_ctx ctx;
    sn_open(&ctx, answer == NULL ? NULL : canned, (void *)(uintptr_t)answer);
    sn_text input = sn_format(&ctx, "{\"abi\":1,\"step\":{\"type\":\"probe\",\"fields\":%s}}", fields);
    sn_text got = sn_run(&ctx, &sn_this_plugin, input);
    if (got.at == NULL) got = sn_format(&ctx, "%s: %.*s", sn_code_name(ctx.error.code), (int)ctx.error.message.n, ctx.error.message.at);
    CHECK(is(got, want), "%s: got %.*s, want %s", fields, (int)got.n, got.at, want);
    sn_close(&ctx);
}

static void steps_run_and_fail(void) {
    expect("{}", NULL, "{\"output\":7}");
    expect("{\"n\":\"12\"}", NULL, "{\"output\":12}");
    expect("{\"n\":98}", NULL, "{\"output\":null}");
    expect("{\"n\":0}", NULL, "bad_fields: n: want at least 1, got 0");
    expect("{\"n\":true}", NULL, "bad_fields: n: want a whole number, got a boolean");
    expect("{\"n\":13}", NULL, "plugin: the step returned neither an output nor an error");
    expect("{\"n\":99}", NULL, "internal: no host: the test must set one");
    expect("{\"n\":99}", "{\"ok\":{\"lines\":[\"x\"]}}", "{\"output\":[\"x\"]}");
    expect("{\"n\":99}", "{\"ok\":null}", "{\"output\":\"no lines\"}");
    expect("{\"n\":99}", "{\"error\":{\"code\":\"denied\",\"message\":\"no\"}}", "denied: no");
    expect("{\"n\":99}", "{\"error\":{\"code\":\"made_up\"}}", "plugin: unknown error");
    static const char *const broken[] = {"{}", "[]", "null", "{\"error\":null}"};
    for (size_t i = 0; i < SN_COUNT(broken); i++) expect("{\"n\":99}", broken[i], "internal: sentinel_command: answer: neither ok nor error");
    expect("{\"n\":99}", "", "internal: sentinel_command: answer: json byte 0: unexpected end");

    static const struct {
        const char *input, *want;
    } inputs[] = {
        {"{", "run input: json byte 1: expected a key"},
        {"{}", "run input: abi 0, want 1"},
        {"{\"abi\":1,\"step\":{\"type\":\"x\"}}", "type: plugin probe has no step type \"x\""},
    };
    for (size_t i = 0; i < SN_COUNT(inputs); i++) {
        sn_ctx ctx;
        sn_open(&ctx, NULL, NULL);
        CHECK(sn_run(&ctx, &sn_this_plugin, sn_str(inputs[i].input)).at == NULL && is(ctx.error.message, inputs[i].want), "%s: %s", inputs[i].input, ctx.error.message.at);
        sn_close(&ctx);
    }
}

static void the_manifest_is_whole(void) {
    sn_ctx ctx;
    sn_open(&ctx, NULL, NULL);
    sn_text got = sn_describe(&ctx, &sn_this_plugin);
    CHECK(is(got,
             "{\"name\":\"probe\",\"version\":\"1.2.3\",\"abi\":1,\"steps\":[{\"type\":\"probe\",\"summary\":\"Probes.\",\"fields\":{\"type\":\"object\","
             "\"properties\":{\"n\":{\"type\":\"integer\"}}},\"infer\":[\"n\"],\"aliases\":{\"m\":\"n\"},\"readOnly\":true}],"
             "\"permissions\":[{\"use\":\"command\",\"names\":[\"code/*\"],\"reason\":\"to \\\"read\\\"\"}]}"),
          "%.*s", (int)got.n, got.at);
    got = sn_validate(&ctx, &sn_this_plugin, sn_str("{\"type\":\"probe\",\"fields\":{\"n\":13}}"));
    CHECK(is(got, "{\"problems\":[{\"field\":\"n\",\"message\":\"brings bad luck\",\"hint\":\"use 14\"}]}"), "%.*s", (int)got.n, got.at);
    got = sn_validate(&ctx, &sn_this_plugin, sn_str("{\"type\":\"other\",\"fields\":{\"n\":13}}"));
    CHECK(is(got, "{\"problems\":[]}"), "%.*s", (int)got.n, got.at);
    static const struct {
        const char *name, *type, *fields, *why;
    } bad[] = {
        {"Probe", "a", "{\"type\":\"object\"}", "describe plugin \"Probe\": want a name"},
        {"probe", "a-b", "{\"type\":\"object\"}", "describe step type \"a-b\": want a name"},
        {"probe", "a", "{", "describe schema of step type \"a\": json byte 1: expected a key"},
        {"probe", "a", "{}", "describe schema of step type \"a\": want \"type\": \"object\""},
    };
    for (size_t i = 0; i < SN_COUNT(bad); i++) {
        sn_step step = {.type = bad[i].type, .fields = bad[i].fields, .run = probe};
        sn_plugin plugin = {.name = bad[i].name, .version = "1", .steps = &step, .step_count = 1};
        CHECK(sn_describe(&ctx, &plugin).at == NULL && strncmp(ctx.error.message.at, bad[i].why, strlen(bad[i].why)) == 0, "%s: %s", bad[i].why, ctx.error.message.at);
    }
    sn_close(&ctx);
}

/* With any amount of memory a step ends with its output or with the error that memory
 * is used up. */
static void memory_may_end_anywhere(void) {
    char fields[30000] = "{\"n\":99,\"params\":[";
    char *p = fields + strlen(fields);
    for (int i = 0; i < 1000; i++) p += sprintf(p, "%s{\"k\":\"%d\"}", i > 0 ? "," : "", i);
    strcpy(p, "]}");
    int ended = 0, spent = 0;
    for (size_t limit = 1; limit < 1 << 20; limit += 4096) {
        sn_ctx ctx;
        sn_open(&ctx, canned, (void *)(uintptr_t) "{\"ok\":{\"lines\":[1,2,3]}}");
        char input[31000];
        sprintf(input, "{\"abi\":1,\"step\":{\"type\":\"probe\",\"fields\":%s}}", fields);
        ctx.limit = limit;
        sn_text got = sn_run(&ctx, &sn_this_plugin, sn_str(input));
        if (got.at != NULL) {
            CHECK(is(got, "{\"output\":[1,2,3]}"), "limit %zu: %.*s", limit, (int)got.n, got.at);
            ended++;
        } else {
            CHECK(ctx.spent && ctx.error.code == SN_MEMORY, "limit %zu: %s", limit, sn_code_name(ctx.error.code));
            spent++;
        }
        CHECK(ctx.held <= limit, "limit %zu: %zu bytes are held", limit, ctx.held);
        sn_close(&ctx);
        CHECK(ctx.held == 0, "limit %zu: %zu bytes are left", limit, ctx.held);
    }
    CHECK(ended > 10 && spent > 10, "%d ended and %d did not", ended, spent);
}

static void marks_free_what_came_after(void) {
    sn_ctx ctx;
    sn_open(&ctx, NULL, NULL);
    sn_text kept = copy(&ctx, "kept");
    size_t held = ctx.held;
    for (int i = 0; i < 1000; i++) {
        sn_mark mark = sn_here(&ctx);
        CHECK(sn_alloc(&ctx, 20000) != NULL, "no memory in pass %d", i);
        sn_back_to(&ctx, mark);
    }
    CHECK(ctx.held == held && is(kept, "kept"), "%zu bytes are held, want %zu", ctx.held, held);
    CHECK(sn_alloc(&ctx, SIZE_MAX) == NULL && ctx.spent, "all memory there is was given");
    sn_close(&ctx);
}

int main(void) {
    json_comes_back_as_it_was();
    bad_json_is_refused_with_its_place();
    depth_has_an_end();
    damaged_json_is_read_or_refused();
    many_fields_are_no_matter();
    numbers_are_what_they_stand_for();
    base64_comes_back();
    texts_are_formatted();
    steps_run_and_fail();
    the_manifest_is_whole();
    memory_may_end_anywhere();
    marks_free_what_came_after();
    printf(failures == 0 ? "all passed\n" : "%d checks failed\n", failures);
    return failures > 0;
}
