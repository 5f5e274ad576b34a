/* Shared by the files of the SDK, not for plugins. */
#ifndef SENTINEL_INTERNAL_H
#define SENTINEL_INTERNAL_H

#include <stdarg.h>

#include "sentinel.h"

struct sn_value {
    sn_kind kind;
    bool truth;   /* of a bool */
    sn_text text; /* of a string or number */
    sn_item *first, *last;
    size_t count;
};

/* Appends without a check for a duplicate name. */
void sn_append(sn_ctx *ctx, sn_value *parent, sn_text name, const sn_value *v);
sn_value *sn_make(sn_ctx *ctx, sn_kind kind, sn_text text);
/* The number of bytes of the character at p, at most n; 0 if it is not UTF-8. */
size_t sn_utf8(const char *p, size_t n);
bool sn_is_number(sn_text text);
sn_text sn_vformat(sn_ctx *ctx, const char *format, va_list args);
void sn_out_of_memory(sn_ctx *ctx);

/* Makes a host call: the value of ok, or NULL. Every wrapper passes its own import,
 * so that the linker omits those that a plugin does not use: the imports of a module
 * then list everything that it can do. */
const sn_value *sn_call(sn_ctx *ctx, const char *function, sn_import import, const sn_value *request);

#ifdef __wasm__
#define SN_IMPORT(name) \
    __attribute__((import_module("extism:host/user"), import_name(#name))) extern uint64_t name(uint64_t request);
#else
/* Natively only the fake host of a test exists. */
#define SN_IMPORT(name) \
    static uint64_t name(uint64_t request) { return request; }
#endif

/* Shorthands for requests. A missing text and a number 0 are omitted. */
void sn_set_str(sn_ctx *ctx, sn_value *object, const char *name, const char *text);
void sn_set_text(sn_ctx *ctx, sn_value *object, const char *name, sn_text text);
void sn_set_int(sn_ctx *ctx, sn_value *object, const char *name, int64_t n);
void sn_set_true(sn_ctx *ctx, sn_value *object, const char *name, bool set);

#endif
