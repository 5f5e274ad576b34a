/* The library for writing step plugins of Sentinel in C11 with wasi-libc.
 *
 *     #include "sdk/sentinel.h"
 *
 *     static const sn_value *shout(sn_ctx *ctx) {
 *         sn_value *out = sn_object(ctx);
 *         sn_set(ctx, out, "text", sn_get(ctx->fields, "text"));
 *         return out;
 *     }
 *
 *     static const sn_step steps[] = {{.type = "shout", .summary = "...", .fields = FIELDS, .run = shout}};
 *     SN_PLUGIN(.name = "shout", .version = "1.0.0", .steps = steps, .step_count = SN_COUNT(steps))
 *
 * Memory: functions with a context allocate their results in the context's memory,
 * which is freed when the call of the export ends; nothing is freed separately, and
 * pointers into it are valid until then. When memory is used up, functions return
 * NULL or false, every function treats NULL as an absent value, and the step ends
 * with the error `memory`, whatever it returns.
 *
 * Errors: a function that returns NULL or false has set ctx->error, and a step that
 * returns NULL ends with that error.
 *
 * Numbers such as A6.3 in comments are clauses of the plugin ABI. */
#ifndef SENTINEL_H
#define SENTINEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The version of the ABI. */
#define SN_ABI 1
/* The maximum nesting of lists and objects that are read and written. */
#define SN_MAX_DEPTH 256
#define SN_COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef struct sn_ctx sn_ctx;
typedef struct sn_value sn_value;

/* --- Texts ------------------------------------------------------------- */

/* UTF-8 of n bytes, which may contain zeros. Texts from this SDK have one more zero
 * after them, so that `at` is a C string too. A missing text is {NULL, 0}. */
typedef struct {
    const char *at;
    size_t n;
} sn_text;

/* The text of a C string; a missing text for NULL. */
sn_text sn_str(const char *c);
bool sn_same(sn_text a, sn_text b);
/* Formats a text. It supports %s, %.*s, %d, %lld, %zu and %% of printf. */
sn_text sn_format(sn_ctx *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A copy of n bytes. */
sn_text sn_copy(sn_ctx *ctx, const char *bytes, size_t n);
/* Memory in the context, zeroed and aligned for anything; NULL if it is used up. */
void *sn_alloc(sn_ctx *ctx, size_t n);

/* Going back to a mark frees the memory that was allocated after it: for long loops. */
typedef struct {
    void *block;
    size_t used;
} sn_mark;
sn_mark sn_here(sn_ctx *ctx);
void sn_back_to(sn_ctx *ctx, sn_mark mark);

/* Base64 with padding. Reading an invalid one returns a missing text. */
sn_text sn_base64(sn_ctx *ctx, sn_text bytes);
sn_text sn_unbase64(sn_ctx *ctx, sn_text text);

/* --- JSON values -------------------------------------------------------- */

typedef enum { SN_ABSENT, SN_NULL, SN_BOOL, SN_NUMBER, SN_STRING, SN_LIST, SN_OBJECT } sn_kind;

/* An item of a list, or a field of an object, which has a name. */
typedef struct sn_item {
    sn_text name;
    const sn_value *value;
    const struct sn_item *next;
} sn_item;

/* Reads one JSON text, strictly. NULL: ctx->error has the position of the error. */
const sn_value *sn_parse(sn_ctx *ctx, sn_text text);
/* JSON without spaces, fields in their order; null for an absent value. A missing
 * text if memory is used up or the value is nested too deeply. */
sn_text sn_print(sn_ctx *ctx, const sn_value *v);

sn_kind sn_kind_of(const sn_value *v);
/* The name of the type for messages: "a number". */
const char *sn_kind_name(const sn_value *v);
/* Neither absent nor null. */
bool sn_given(const sn_value *v);
/* The field of an object; absent for other values. */
const sn_value *sn_get(const sn_value *v, const char *name);
const sn_value *sn_at(const sn_value *v, size_t index);
/* The first item or field; next is the one after it. */
const sn_item *sn_items(const sn_value *v);
size_t sn_count(const sn_value *v);
/* The text of a string; a missing text for other values. */
sn_text sn_text_of(const sn_value *v);
bool sn_bool_or(const sn_value *v, bool fallback);
/* A whole number that fits: 12, 12.0 and 1.2e1 are 12. */
bool sn_as_int(const sn_value *v, int64_t *out);
int64_t sn_int_or(const sn_value *v, int64_t fallback);
/* This and sn_double link the code for doubles, 23 KB. */
bool sn_as_double(const sn_value *v, double *out);
/* Equal in any order of fields, and numbers by value. */
bool sn_equal(const sn_value *a, const sn_value *b);

sn_value *sn_null(sn_ctx *ctx);
sn_value *sn_bool(sn_ctx *ctx, bool b);
sn_value *sn_int(sn_ctx *ctx, int64_t n);
/* Null for NaN and infinities. */
sn_value *sn_double(sn_ctx *ctx, double d);
/* A number as it is written; absent if it is invalid. */
const sn_value *sn_number(sn_ctx *ctx, sn_text text);
/* Bytes that are not UTF-8 are written as U+FFFD. A missing text is an absent value. */
sn_value *sn_string(sn_ctx *ctx, sn_text text);
sn_value *sn_list(sn_ctx *ctx);
sn_value *sn_object(sn_ctx *ctx);
/* Adds to a list; an absent value is omitted. */
void sn_push(sn_ctx *ctx, sn_value *list, const sn_value *v);
/* Sets a field; an absent value is omitted, so optional fields need no branches.
 * The value is shared, not copied. */
void sn_set(sn_ctx *ctx, sn_value *object, const char *name, const sn_value *v);
void sn_set_named(sn_ctx *ctx, sn_value *object, sn_text name, const sn_value *v);

/* --- Errors, A5 --------------------------------------------------------- */

typedef enum {
    SN_BAD_FIELDS,
    SN_DENIED,
    SN_NOT_FOUND,
    SN_CONFLICT,
    SN_TIMEOUT,
    SN_CANCELLED,
    SN_UNAVAILABLE, /* a retry may help */
    SN_LIMIT,
    SN_TRAP,
    SN_MEMORY,
    SN_OUTPUT,
    SN_PLUGIN, /* from the plugin, and unknown codes */
    SN_INTERRUPTED,
    SN_INTERNAL
} sn_code;

typedef struct {
    sn_code code;
    sn_text message;
    sn_text field;          /* path of the invalid field; missing if n is 0, as hint */
    int64_t retry_after_ms; /* the delay that a server requested; 0 is none */
    bool permanent;         /* a retry cannot help */
    sn_text hint;           /* what to do next, for users */
} sn_error;

const char *sn_code_name(sn_code code);
/* Set ctx->error and return NULL, for `return sn_fail(...)`. The format is that of
 * sn_format. */
void *sn_fail(sn_ctx *ctx, sn_code code, const char *format, ...) __attribute__((format(printf, 3, 4)));
void *sn_bad_field(sn_ctx *ctx, const char *field, const char *format, ...) __attribute__((format(printf, 3, 4)));
sn_value *sn_error_value(sn_ctx *ctx, const sn_error *error);
/* False if the value is not an error object. */
bool sn_error_of(const sn_value *v, sn_error *error);
/* Ends the guest at once with a trap: the host gets the line as the message. */
_Noreturn void sn_panic(const char *message);

/* --- A plugin, A2 ------------------------------------------------------- */

/* A role of a step type, A9. The plugin needs a permission with use "provide" and as
 * among its names. */
typedef struct {
    const char *as;   /* command error_classifier output_classifier notifier model */
    const char *name; /* of a command, PLUGIN/VERB; else NULL */
} sn_provides;

typedef struct {
    const char *type;    /* lower_snake, unique in the plugin */
    const char *summary; /* one sentence, for users */
    const char *fields;  /* JSON Schema of type object; properties may have marks, A2.3 */
    /* Executes one step and returns its output, or NULL for ctx->error. */
    const sn_value *(*run)(sn_ctx *ctx);
    /* Reports problems of the fields beyond the schema with sn_problem. They are as
     * written: a text may have references where a number is required. May be NULL. */
    void (*check)(sn_ctx *ctx, const sn_value *fields);
    const char *const *infer;   /* fields from which the type is inferred, ended by NULL; may be NULL */
    const char *const *aliases; /* alias, field, alias, field, NULL; may be NULL */
    bool read_only;             /* changes nothing outside the run */
    const char *output;         /* JSON Schema of the output; may be NULL, but not for a command */
    sn_provides provides;       /* what the type is besides; none without as */
} sn_step;

typedef struct {
    const char *use;          /* command llm watch spawn emit http folder secret provide */
    const char *const *names; /* see A2.4; ended by NULL; may be NULL */
    const char *reason;       /* for the operator */
} sn_permission;

typedef struct {
    const char *name; /* ^[a-z][a-z0-9_]{0,63}$ */
    const char *version;
    const sn_step *steps;
    size_t step_count;
    const sn_permission *permissions;
    size_t permission_count;
    bool stateless; /* requests and outputs depend only on the input */
} sn_plugin;

/* Defines the plugin of the module. Use it once, in one file. */
#define SN_PLUGIN(...) const sn_plugin sn_this_plugin = {__VA_ARGS__};
extern const sn_plugin sn_this_plugin;

/* A list of names, ended by NULL. */
#define SN_NAMES(...) ((const char *const[]){__VA_ARGS__, NULL})

void sn_problem(sn_ctx *ctx, const char *field, const char *message, const char *hint);

/* --- The context of a step, A3 ------------------------------------------ */

typedef uint64_t (*sn_import)(uint64_t request);
/* Answers host calls in a test: gets the name of a function and the text of a
 * request, returns the text of the answer. */
typedef sn_text (*sn_host)(void *user, sn_ctx *ctx, const char *function, sn_text request);

struct sn_ctx {
    sn_text step_type;
    sn_text id, name; /* missing if the definition has none */
    sn_text address;  /* position in the definition: "3.then.0" */
    sn_text path;     /* position in the run: "1#7.steps.0" */
    sn_text run, sentinel;
    int64_t iteration; /* from 1, as is attempt */
    int64_t attempt;
    sn_text workspace;     /* absolute path, for messages: a guest has no files */
    sn_text key;           /* idempotency key, equal for all attempts */
    const sn_value *state; /* of this attempt's last checkpoint; NULL if none */
    const sn_value *fields;
    bool has_retry; /* if true, the next three describe the attempt before */
    int64_t retry_attempts;
    sn_error retry_error;
    sn_text retry_category;

    sn_error error; /* why the last function returned NULL or false */

    /* The rest is private to the SDK. */
    void *memory;      /* the newest block */
    size_t used, held; /* bytes of it in use; bytes of all blocks */
    size_t limit;      /* of held; 0 is none. Tests set it */
    bool spent;        /* memory was used up */
    sn_value *problems;
    sn_host host;
    void *user;
};

/* The step's own fields with a type; false: ctx->error has the reason. A number or
 * boolean is converted to a text, a text of digits to a number, because they may be
 * values of references. */
bool sn_text_field(sn_ctx *ctx, const char *name, sn_text *out);
bool sn_int_field(sn_ctx *ctx, const char *name, int64_t min, int64_t fallback, int64_t *out);
bool sn_bool_field(sn_ctx *ctx, const char *name, bool fallback, bool *out);
/* The number of steps in a field with the mark steps, of branches with that mark. */
int64_t sn_steps(const sn_ctx *ctx, const char *field);
size_t sn_branches(const sn_ctx *ctx, const char *field);

/* --- Calls of the host, A6 ---------------------------------------------- */

/* A call blocks until its answer arrives. The module may be unloaded meanwhile and
 * executed again from its start later; calls that have been answered then return the
 * same answer at once. So the calls of a step must depend only on its input and on
 * earlier answers. Optional lists, objects and texts are NULL if they are missing. */

/* A6.3. A command that ran and found a failure returns a result; an error means
 * that it could not run. */
const sn_value *sn_command(sn_ctx *ctx, const char *name, const sn_value *params);
/* A call that a model has requested: the host checks it against tools, a list of
 * names and patterns; NULL is all public commands. */
const sn_value *sn_tool_command(sn_ctx *ctx, const char *name, const sn_value *arguments, const sn_value *tools);

/* A6.4 */
typedef struct {
    sn_text content;
    bool is_tool; /* the result of a tool call; else a message of the user */
    sn_text tool_call_id, name;
    bool is_error;
} sn_message;

/* Other messages in the place of a range of the conversation. The result of a tool stays
 * behind the call that it belongs to. */
typedef struct {
    int64_t from, to; /* counted from 0; to is not part of it */
    const sn_message *with;
    size_t with_count;
} sn_replacement;

typedef struct {
    sn_text conversation; /* from the reply before; missing starts one */
    const sn_message *append;
    size_t append_count;
    sn_text system;              /* only in the first turn, as context */
    bool context;                /* adds $ragContext and the variables to the system text */
    sn_text model;               /* "provider/name"; missing is the configured one */
    const sn_value *temperature; /* a number */
    int64_t max_tokens;          /* 0 is the default of the model */
    const sn_value *tools;       /* list of names and patterns of commands */
    const sn_value *schema;      /* JSON Schema of the reply */
    const sn_replacement *replace; /* in their order, before append; keeps it within the window */
    size_t replace_count;
    bool aside; /* answers without a change of the conversation */
} sn_turn;

typedef struct {
    sn_text id, name;
    const sn_value *arguments;
} sn_tool_call;

typedef struct {
    sn_text conversation;
    sn_text text;             /* without the text of tool calls */
    const sn_value *json;     /* the text read as JSON, if it is JSON */
    const sn_value *problems; /* list: violations of the schema */
    const sn_tool_call *tool_calls;
    size_t tool_call_count;
    sn_text finish; /* "stop", "tools" or "length" */
    int64_t input_limit; /* tokens that a turn may have beside its reply; 0 if unknown */
    int64_t input_tokens, output_tokens, calls;
    const sn_value *cost_usd; /* a number */
    sn_text provider, model;
} sn_reply;

bool sn_llm(sn_ctx *ctx, const sn_turn *turn, sn_reply *out);

/* A6.5 */
typedef struct {
    sn_text execution;
    const sn_value *rules; /* list of {pattern, classification, action?} */
    sn_text until;         /* "finished" (default), "error" or "match" */
} sn_watch;

typedef struct {
    sn_text text, classification, stream;
    int64_t number;
    const sn_value *timestamp;
} sn_line;

typedef struct {
    sn_text execution;
    const sn_line *lines;
    size_t line_count;
    sn_text text; /* the lines for display */
    bool finished, has_exit_code;
    int64_t exit_code, dropped, cursor;
} sn_watched;

bool sn_watch_lines(sn_ctx *ctx, const sn_watch *watch, sn_watched *out);

/* A6.6. An expression that does not parse, throws or takes too long is an error. */
bool sn_eval(sn_ctx *ctx, const char *expression, const sn_value *vars, const sn_value **value, bool *truthy);
/* A6.7. For an unknown variable *value is NULL. */
bool sn_get_var(sn_ctx *ctx, const char *path, const sn_value **value);
bool sn_set_var(sn_ctx *ctx, const char *name, const sn_value *value);
bool sn_set_vars(sn_ctx *ctx, const sn_value *values);

/* A6.8 */
typedef struct {
    const char *field;    /* path of a field with steps: "then", "branches.0", "branches.lint" */
    const sn_value *vars; /* set in the scope before they start */
} sn_block;

typedef struct {
    bool success;
    const sn_value *output; /* of the block's last step */
    sn_error error;         /* the reason if success is false */
    bool skipped;           /* it did not begin, because another block failed */
} sn_block_result;

typedef struct {
    int64_t concurrency; /* blocks at once; 0 is all */
    bool fail_fast;      /* the first failure cancels the others */
    bool drain;          /* after a failure no further block begins; those that run go on to their end */
    bool isolated;       /* what a block sets is not kept behind it, also of a single block */
    int64_t total;       /* blocks of all calls of the step, for people; 0 is not known */
} sn_block_options;

/* Executes one block in the scope of the step; NULL for the error that ended it. */
const sn_value *sn_run_block(sn_ctx *ctx, const char *field, const sn_value *vars);
/* Executes several as parallel branches and writes count results. options may be NULL. */
bool sn_run_blocks(sn_ctx *ctx, const sn_block *blocks, size_t count, const sn_block_options *options, sn_block_result *out);

/* A6.9. Starts a child run exactly once: of the definition in a field, or of the
 * sentinel with an id. sentinel may be NULL. */
bool sn_spawn(sn_ctx *ctx, const char *field, const sn_value *inputs, sn_text *run, sn_text *sentinel);
bool sn_spawn_sentinel(sn_ctx *ctx, const char *id, const sn_value *inputs, sn_text *run, sn_text *sentinel);
/* A6.10. id may be NULL. */
bool sn_emit(sn_ctx *ctx, const char *event, const sn_value *data, sn_text *id);

/* A6.11. One of the first five; the instance may be unloaded meanwhile. */
typedef struct {
    int64_t duration_ms;
    sn_text until; /* RFC 3339 */
    sn_text event; /* pattern of the next event */
    sn_text run;   /* the end of a run */
    sn_text prompt;
    const sn_value *approvers; /* list, with prompt; NULL is any user who may decide */
    sn_text call_kind;         /* with prompt: the kind of calls that an approval covers */
    int64_t timeout_ms;        /* 0: only the timeout of the step */
} sn_wait;

typedef struct {
    bool timed_out;
    const sn_value *event;  /* its record */
    const sn_value *result; /* of the run, also if it has failed */
    bool decided, approved;
    sn_text by, at, comment; /* of the decision */
} sn_waited;

bool sn_wait_for(sn_ctx *ctx, const sn_wait *wait, sn_waited *out);
bool sn_sleep(sn_ctx *ctx, int64_t ms);

/* A6.12. Replay starts from here with state in ctx->state. */
bool sn_checkpoint(sn_ctx *ctx, const sn_value *state);

/* A6.13. The host replaces {{secret.NAME}} in path, query and headers, in the body
 * only with body_secrets: escaped as JSON or a form if that is the content-type. Such
 * a body must not contain data from other sources: a {{secret.NAME}} in it would be
 * replaced by the secret. */
typedef struct {
    sn_text method; /* missing is GET */
    sn_text url;
    const sn_value *headers; /* object of texts */
    sn_text body;
    bool body_secrets;
    int64_t timeout_ms; /* 0 is the host's default */
} sn_request;

typedef struct {
    int64_t status;          /* 400 and more is an answer, not an error */
    const sn_value *headers; /* object of texts, names in lower case */
    sn_text body;            /* base64 if that is set: see sn_unbase64 */
    bool base64, truncated;
} sn_response;

bool sn_http(sn_ctx *ctx, const sn_request *request, sn_response *out);

/* A6.14. Logging never fails a step. */
void sn_debug(sn_ctx *ctx, sn_text message);
void sn_info(sn_ctx *ctx, sn_text message);
void sn_warn(sn_ctx *ctx, sn_text message);
/* At a level, "error" too, with the result. */
bool sn_log(sn_ctx *ctx, const char *level, sn_text message);
/* A6.15 */
bool sn_now(sn_ctx *ctx, int64_t *unix_ms, sn_text *iso);

/* A6.16. Paths are relative to the folder, with `/`; NULL is the folder itself. */
typedef struct {
    sn_text text; /* base64 if that is set: see sn_unbase64 */
    bool base64, truncated;
    int64_t size; /* of the whole file, in bytes */
} sn_part;

typedef struct {
    sn_text name;
    bool dir;
    int64_t size;
    const sn_value *modified;
} sn_entry;

typedef struct {
    const sn_entry *entries;
    size_t count;
    bool truncated; /* there are more: continue at offset + count */
} sn_listing;

typedef struct {
    bool exists, dir;
    int64_t size;
    const sn_value *modified;
} sn_stat;

/* At most length bytes, starting at offset; 0 is the limit of the host, 160 KiB. */
bool sn_read_file(sn_ctx *ctx, const char *folder, const char *path, int64_t offset, int64_t length, sn_part *out);
/* Replaces the file atomically. size may be NULL. */
bool sn_write_file(sn_ctx *ctx, const char *folder, const char *path, sn_text text, int64_t *size);
bool sn_write_bytes(sn_ctx *ctx, const char *folder, const char *path, sn_text bytes, int64_t *size);
bool sn_list_files(sn_ctx *ctx, const char *folder, const char *path, int64_t offset, sn_listing *out);
bool sn_stat_file(sn_ctx *ctx, const char *folder, const char *path, sn_stat *out);
bool sn_remove_file(sn_ctx *ctx, const char *folder, const char *path);

/* --- In a test, natively ------------------------------------------------ */

/* A context without an export; free it with sn_close. */
void sn_open(sn_ctx *ctx, sn_host host, void *user);
void sn_close(sn_ctx *ctx);
/* The exports as functions: the output, or no text and ctx->error. */
sn_text sn_describe(sn_ctx *ctx, const sn_plugin *plugin);
sn_text sn_run(sn_ctx *ctx, const sn_plugin *plugin, sn_text input);
sn_text sn_validate(sn_ctx *ctx, const sn_plugin *plugin, sn_text input);

#endif
