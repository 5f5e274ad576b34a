/* Writing JSON. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* A growing buffer. After it is out of memory, it drops what is added. */
typedef struct {
    char *at;
    size_t n, room;
    bool failed;
} buffer;

/* Doubles the capacity, so that each byte is copied only a few times. */
static void add(buffer *b, const char *bytes, size_t n) {
    if (b->failed) return;
    if (n > b->room - b->n) {
        size_t room = b->room < 256 ? 256 : b->room * 2;
        if (room < b->n + n) room = b->n + n;
        char *at = realloc(b->at, room);
        if (at == NULL) {
            b->failed = true;
            return;
        }
        b->at = at;
        b->room = room;
    }
    memcpy(b->at + b->n, bytes, n);
    b->n += n;
}

/* Writes a JSON string. Sequences of plain characters are copied at once: texts of
 * models and shells are long and rarely have escapes. */
static void add_string(buffer *b, sn_text t) {
    static const char digits[] = "0123456789abcdef";
    size_t start = 0, i = 0;
    add(b, "\"", 1);
    while (i < t.n) {
        unsigned char c = (unsigned char)t.at[i];
        size_t size = sn_utf8(t.at + i, t.n - i);
        if (c >= ' ' && c != '"' && c != '\\' && size > 0) {
            i += size;
            continue;
        }
        add(b, t.at + start, i - start);
        char code[] = {'\\', 'u', '0', '0', digits[c >> 4], digits[c & 15]};
        char letter = c == '\n' ? 'n' : c == '\r' ? 'r' : c == '\t' ? 't' : c == '"' || c == '\\' ? (char)c : 0;
        if (size == 0) {
            add(b, "\xef\xbf\xbd", 3); /* U+FFFD */
        } else if (letter != 0) {
            add(b, (char[]){'\\', letter}, 2);
        } else {
            add(b, code, sizeof code);
        }
        start = ++i;
    }
    add(b, t.at + start, t.n - start);
    add(b, "\"", 1);
}

/* Recursion of at most SN_MAX_DEPTH small frames. A host refuses deeper values, or
 * the value contains itself. */
static void add_value(buffer *b, const sn_value *v, int depth) {
    if (depth > SN_MAX_DEPTH) b->failed = true;
    if (b->failed) return;
    switch (sn_kind_of(v)) {
    case SN_ABSENT:
    case SN_NULL:
        add(b, "null", 4);
        break;
    case SN_BOOL:
        add(b, v->truth ? "true" : "false", v->truth ? 4 : 5);
        break;
    case SN_NUMBER:
        add(b, v->text.at, v->text.n);
        break;
    case SN_STRING:
        add_string(b, v->text);
        break;
    case SN_LIST:
    case SN_OBJECT:
        add(b, v->kind == SN_LIST ? "[" : "{", 1);
        for (const sn_item *item = v->first; item != NULL; item = item->next) {
            if (item != v->first) add(b, ",", 1);
            if (v->kind == SN_OBJECT) {
                add_string(b, item->name);
                add(b, ":", 1);
            }
            add_value(b, item->value, depth + 1);
        }
        add(b, v->kind == SN_LIST ? "]" : "}", 1);
        break;
    }
}

/* The buffer grows outside of the context, where it can be freed; only the result is
 * in the context. */
sn_text sn_print(sn_ctx *ctx, const sn_value *v) {
    buffer b = {0};
    add_value(&b, v, 0);
    sn_text text = {NULL, 0};
    if (b.failed) {
        sn_fail(ctx, SN_LIMIT, "json: nested more than %d deep, or larger than memory", SN_MAX_DEPTH);
    } else {
        text = sn_copy(ctx, b.at, b.n);
    }
    free(b.at);
    return text;
}
