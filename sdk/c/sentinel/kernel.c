/* The memory of the Extism kernel, by which texts are passed: blocks of bytes behind
 * handles, outside the guest's own memory, read and written eight bytes at a time; the call of a
 * host function over it; and the exports of A1. */
#include <string.h>
#ifdef __wasm__
#include <unistd.h>
#else
#include <stdio.h>
#include <stdlib.h>
#endif

#include "internal.h"

#ifdef __wasm__
#define KERNEL(name) __attribute__((import_module("extism:host/env"), import_name(#name))) extern

KERNEL(alloc) uint64_t kernel_alloc(uint64_t n);
KERNEL(free) void kernel_free(uint64_t handle);
KERNEL(length) uint64_t kernel_length(uint64_t handle);
KERNEL(load_u8) uint32_t kernel_load8(uint64_t at);
KERNEL(load_u64) uint64_t kernel_load64(uint64_t at);
KERNEL(store_u8) void kernel_store8(uint64_t at, uint32_t byte);
KERNEL(store_u64) void kernel_store64(uint64_t at, uint64_t word);
KERNEL(input_length) uint64_t kernel_input_length(void);
KERNEL(input_load_u8) uint32_t kernel_input8(uint64_t at);
KERNEL(input_load_u64) uint64_t kernel_input64(uint64_t at);
KERNEL(output_set) void kernel_output(uint64_t handle, uint64_t n);
KERNEL(error_set) void kernel_error(uint64_t handle);

/* Copies a text into a new block, which the caller frees or passes to the host. */
static uint64_t store(sn_text text) {
    uint64_t handle = kernel_alloc(text.n);
    size_t i = 0;
    for (; i + 8 <= text.n; i += 8) {
        uint64_t word; /* little-endian, as all of wasm */
        memcpy(&word, text.at + i, 8);
        kernel_store64(handle + i, word);
    }
    for (; i < text.n; i++) kernel_store8(handle + i, (unsigned char)text.at[i]);
    return handle;
}

/* Copies n bytes with two functions, those for the input or those for a block. */
static sn_text load(sn_ctx *ctx, uint64_t from, uint64_t n, uint64_t (*word_at)(uint64_t), uint32_t (*byte_at)(uint64_t)) {
    char *out = sn_alloc(ctx, (size_t)n + 1);
    if (out == NULL) return (sn_text){NULL, 0};
    uint64_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint64_t word = word_at(from + i);
        memcpy(out + i, &word, 8);
    }
    for (; i < n; i++) out[i] = (char)byte_at(from + i);
    return (sn_text){out, (size_t)n};
}

/* It frees both blocks, because the host keeps neither. */
static sn_text ask(sn_ctx *ctx, const char *function, sn_import import, sn_text request) {
    (void)function;
    uint64_t in = store(request), out = import(in);
    kernel_free(in);
    sn_text answer = load(ctx, out, out == 0 ? 0 : kernel_length(out), kernel_load64, kernel_load8);
    kernel_free(out);
    return answer;
}

typedef sn_text (*export)(sn_ctx *ctx, const sn_plugin *plugin, sn_text input);

/* Executes one export: 0 with an output, 1 with an error, A1.4. */
static int32_t serve(export f, bool has_input) {
    sn_ctx ctx;
    sn_open(&ctx, NULL, NULL);
    sn_text input = {"", 0};
    if (has_input) input = load(&ctx, 0, kernel_input_length(), kernel_input64, kernel_input8);
    sn_text output = input.at == NULL ? input : f(&ctx, &sn_this_plugin, input);
    if (output.at != NULL) {
        kernel_output(store(output), output.n);
    } else {
        if (ctx.spent) {
            /* Out of memory causes all later errors. The memory that is freed
             * here is used to write this one. */
            sn_close(&ctx);
            sn_out_of_memory(&ctx);
            ctx.spent = false;
        }
        sn_error error = ctx.error;
        sn_text text = sn_print(&ctx, sn_error_value(&ctx, &error));
        kernel_error(store(text.at == NULL || ctx.spent ? sn_str("the plugin's memory is used up") : text));
    }
    sn_close(&ctx);
    return output.at == NULL;
}

static sn_text describe(sn_ctx *ctx, const sn_plugin *plugin, sn_text input) {
    (void)input;
    return sn_describe(ctx, plugin);
}

__attribute__((export_name("describe"))) int32_t sn_export_describe(void) { return serve(describe, false); }
__attribute__((export_name("run"))) int32_t sn_export_run(void) { return serve(sn_run, true); }
__attribute__((export_name("validate"))) int32_t sn_export_validate(void) { return serve(sn_validate, true); }

/* The host searches for a line with this word when a guest traps. */
_Noreturn void sn_panic(const char *message) {
    static const char start[] = "panic: ";
    /* If nothing can be written, the trap remains. */
    if (write(2, start, sizeof start - 1) >= 0 && write(2, message, strlen(message)) >= 0) (void)!write(2, "\n", 1);
    __builtin_trap();
}
#else
/* A native build has only the host of a test. */
static sn_text ask(sn_ctx *ctx, const char *function, sn_import import, sn_text request) {
    (void)import;
    if (ctx->host == NULL) return sn_str("{\"error\":{\"code\":\"internal\",\"message\":\"no host: the test must set one\"}}");
    return ctx->host(ctx->user, ctx, function, request);
}

_Noreturn void sn_panic(const char *message) {
    fprintf(stderr, "panic: %s\n", message);
    abort();
}
#endif

/* An invalid answer is reported as a fault of the host: the step cannot handle
 * it. */
const sn_value *sn_call(sn_ctx *ctx, const char *function, sn_import import, const sn_value *request) {
    sn_text text = sn_print(ctx, request);
    /* Out of memory: the request may be incomplete, so it is not sent. */
    if (text.at == NULL || ctx->spent) return NULL;
    sn_text body = ask(ctx, function, import, text);
    if (ctx->spent) return NULL;
    const sn_value *answer = sn_parse(ctx, body);
    if (ctx->spent) return NULL;
    if (answer == NULL) {
        sn_text why = ctx->error.message;
        return sn_fail(ctx, SN_INTERNAL, "%s: answer: %.*s", function, (int)why.n, why.at);
    }
    if (sn_error_of(sn_get(answer, "error"), &ctx->error)) return NULL;
    const sn_value *ok = sn_get(answer, "ok");
    return ok != NULL ? ok : sn_fail(ctx, SN_INTERNAL, "%s: answer: neither ok nor error", function);
}
