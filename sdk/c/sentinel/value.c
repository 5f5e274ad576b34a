/* JSON values: building and reading them. */
#include <string.h>

#include "internal.h"

/* Allocates every value. If memory is used up it returns NULL, which all functions
 * treat as an absent value, so that callers need no checks. */
sn_value *sn_make(sn_ctx *ctx, sn_kind kind, sn_text text) {
    sn_value *v = sn_alloc(ctx, sizeof *v);
    if (v != NULL) *v = (sn_value){.kind = kind, .text = text};
    return v;
}

sn_value *sn_null(sn_ctx *ctx) { return sn_make(ctx, SN_NULL, (sn_text){NULL, 0}); }

sn_value *sn_bool(sn_ctx *ctx, bool b) {
    sn_value *v = sn_make(ctx, SN_BOOL, (sn_text){NULL, 0});
    if (v != NULL) v->truth = b;
    return v;
}

sn_value *sn_int(sn_ctx *ctx, int64_t n) {
    sn_text text = sn_format(ctx, "%lld", (long long)n);
    return text.at == NULL ? NULL : sn_make(ctx, SN_NUMBER, text);
}

/* The text is not copied: it is in the input or in the context. */
const sn_value *sn_number(sn_ctx *ctx, sn_text text) { return sn_is_number(text) ? sn_make(ctx, SN_NUMBER, text) : NULL; }

sn_value *sn_string(sn_ctx *ctx, sn_text text) { return text.at == NULL ? NULL : sn_make(ctx, SN_STRING, text); }

sn_value *sn_list(sn_ctx *ctx) { return sn_make(ctx, SN_LIST, (sn_text){NULL, 0}); }

sn_value *sn_object(sn_ctx *ctx) { return sn_make(ctx, SN_OBJECT, (sn_text){NULL, 0}); }

/* The item is separate from the value, so that a value may be in several lists and
 * objects at once, such as a field of the input in the output. */
void sn_append(sn_ctx *ctx, sn_value *parent, sn_text name, const sn_value *v) {
    sn_item *item = parent == NULL || v == NULL ? NULL : sn_alloc(ctx, sizeof *item);
    if (item == NULL) return;
    *item = (sn_item){.name = name, .value = v};
    if (parent->last == NULL) {
        parent->first = item;
    } else {
        parent->last->next = item;
    }
    parent->last = item;
    parent->count++;
}

void sn_push(sn_ctx *ctx, sn_value *list, const sn_value *v) {
    if (sn_kind_of(list) == SN_LIST) sn_append(ctx, list, (sn_text){NULL, 0}, v);
}

/* Searches for the name first, because a host refuses a text with a duplicate name.
 * Objects that steps build are small. */
void sn_set_named(sn_ctx *ctx, sn_value *object, sn_text name, const sn_value *v) {
    if (sn_kind_of(object) != SN_OBJECT || v == NULL) return;
    for (sn_item *item = object->first; item != NULL; item = (sn_item *)item->next) {
        if (sn_same(item->name, name)) {
            item->value = v;
            return;
        }
    }
    sn_append(ctx, object, name, v);
}

void sn_set(sn_ctx *ctx, sn_value *object, const char *name, const sn_value *v) { sn_set_named(ctx, object, sn_str(name), v); }

void sn_set_text(sn_ctx *ctx, sn_value *object, const char *name, sn_text text) { sn_set(ctx, object, name, sn_string(ctx, text)); }

void sn_set_str(sn_ctx *ctx, sn_value *object, const char *name, const char *text) { sn_set_text(ctx, object, name, sn_str(text)); }

/* For requests: 0 means "not given" in the structs of the header. */
void sn_set_int(sn_ctx *ctx, sn_value *object, const char *name, int64_t n) {
    if (n != 0) sn_set(ctx, object, name, sn_int(ctx, n));
}

void sn_set_true(sn_ctx *ctx, sn_value *object, const char *name, bool set) {
    if (set) sn_set(ctx, object, name, sn_bool(ctx, true));
}

/* --- Reading: NULL is an absent value in all of these. --- */

sn_kind sn_kind_of(const sn_value *v) { return v == NULL ? SN_ABSENT : v->kind; }

const char *sn_kind_name(const sn_value *v) {
    static const char *const names[] = {"nothing", "null", "a boolean", "a number", "a text", "a list", "an object"};
    return names[sn_kind_of(v)];
}

bool sn_given(const sn_value *v) { return sn_kind_of(v) > SN_NULL; }

const sn_item *sn_items(const sn_value *v) { return v == NULL ? NULL : v->first; }

size_t sn_count(const sn_value *v) { return v == NULL ? 0 : v->count; }

/* Linear search: objects are small, and sn_items iterates over all
 * fields. */
static const sn_value *named(const sn_value *v, sn_text name) {
    if (sn_kind_of(v) != SN_OBJECT) return NULL;
    for (const sn_item *item = v->first; item != NULL; item = item->next) {
        if (sn_same(item->name, name)) return item->value;
    }
    return NULL;
}

const sn_value *sn_get(const sn_value *v, const char *name) { return named(v, sn_str(name)); }

const sn_value *sn_at(const sn_value *v, size_t index) {
    if (sn_kind_of(v) != SN_LIST) return NULL;
    const sn_item *item = v->first;
    while (item != NULL && index-- > 0) item = item->next;
    return item == NULL ? NULL : item->value;
}

sn_text sn_text_of(const sn_value *v) { return sn_kind_of(v) == SN_STRING ? v->text : (sn_text){NULL, 0}; }

bool sn_bool_or(const sn_value *v, bool fallback) { return sn_kind_of(v) == SN_BOOL ? v->truth : fallback; }

int64_t sn_int_or(const sn_value *v, int64_t fallback) {
    int64_t n = fallback;
    return sn_as_int(v, &n) ? n : fallback;
}

bool sn_same_number(sn_text a, sn_text b); /* number.c */

/* Compared up to SN_MAX_DEPTH, because a value could contain itself. */
static bool same(const sn_value *a, const sn_value *b, int depth) {
    if (sn_kind_of(a) != sn_kind_of(b) || depth > SN_MAX_DEPTH || sn_count(a) != sn_count(b)) return false;
    const sn_item *other = sn_items(b);
    switch (sn_kind_of(a)) {
    case SN_BOOL:
        return a->truth == b->truth;
    case SN_NUMBER:
        return sn_same_number(a->text, b->text);
    case SN_STRING:
        return sn_same(a->text, b->text);
    case SN_LIST:
    case SN_OBJECT:
        for (const sn_item *item = a->first; item != NULL; item = item->next, other = other->next) {
            /* Fields usually have the same order; searching for each one takes
             * quadratic time. */
            bool aligned = a->kind == SN_LIST || sn_same(item->name, other->name);
            if (!same(item->value, aligned ? other->value : named(b, item->name), depth + 1)) return false;
        }
        return true;
    default:
        return true;
    }
}

bool sn_equal(const sn_value *a, const sn_value *b) { return same(a, b, 0); }
