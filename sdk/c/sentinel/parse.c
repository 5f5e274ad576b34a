/* Reading JSON: strictly, with an explicit stack, because that of a guest is small. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

/* A list or object that is being read. */
typedef struct {
    sn_value *value;
    sn_text name; /* of the field that is being read */
} level;

typedef struct {
    sn_ctx *ctx;
    sn_text text;
    size_t at;
    size_t depth;
    level open[SN_MAX_DEPTH];
} parser;

/* Ends the reading with an error at the current position; returns NULL. */
static void *fail(parser *p, const char *reason) {
    if (p->ctx->spent) return NULL; /* out of memory is the reason */
    return sn_fail(p->ctx, SN_PLUGIN, "json byte %zu: %s", p->at, reason);
}

/* The next byte that is not a space, -1 at the end, without reading it. */
static int next(parser *p) {
    while (p->at < p->text.n) {
        char c = p->text.at[p->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') return (unsigned char)c;
        p->at++;
    }
    return -1;
}

/* Skips that byte, if it is next. */
static bool accept(parser *p, char c) {
    bool found = next(p) == c;
    if (found) p->at++;
    return found;
}

/* The four hex digits at a position, -1 if there are none. */
static int32_t hex(const parser *p, size_t at) {
    if (at + 4 > p->text.n) return -1;
    int32_t n = 0;
    for (size_t i = at; i < at + 4; i++) {
        char c = p->text.at[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        n = n << 4 | digit;
    }
    return n;
}

/* Writes a character as UTF-8 and returns the end. */
static char *put(char *out, uint32_t c) {
    if (c < 0x80) {
        *out++ = (char)c;
        return out;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    *out++ = (char)(lead[more] | c >> (6 * more));
    while (more-- > 0) *out++ = (char)(0x80 | (c >> (6 * more) & 0x3f));
    return out;
}

/* Reads an escape, from the character after the backslash, writes its value and
 * returns the end; NULL if it is invalid. Half of a pair becomes U+FFFD. */
static char *escape(parser *p, char *out) {
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    int c = p->at < p->text.n ? p->text.at[p->at] : 0;
    const char *found = c == 0 ? NULL : strchr(from, c);
    if (found != NULL) {
        p->at++;
        *out++ = to[found - from];
        return out;
    }
    if (c != 'u') return fail(p, p->at < p->text.n ? "unknown escape" : "unexpected end");
    int32_t unit = hex(p, p->at + 1);
    if (unit < 0) return fail(p, "expected four hex digits");
    p->at += 5;
    if (unit < 0xd800 || unit > 0xdfff) return put(out, (uint32_t)unit);
    if (unit < 0xdc00 && p->at + 1 < p->text.n && p->text.at[p->at] == '\\' && p->text.at[p->at + 1] == 'u') {
        int32_t low = hex(p, p->at + 2);
        if (low >= 0xdc00 && low <= 0xdfff) {
            p->at += 6;
            return put(out, 0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
        }
    }
    return put(out, 0xfffd);
}

/* The position of the closing quote of this string, or the end of the text. */
static size_t quote(const parser *p) {
    size_t i = p->at;
    for (; i < p->text.n && p->text.at[i] != '"'; i++) {
        if (p->text.at[i] == '\\') i++;
    }
    return i < p->text.n ? i : p->text.n;
}

/* Reads a string, from its quote; no text for an error. */
static sn_text string(parser *p) {
    p->at++;
    /* The value of an escape is never longer than the escape. */
    char *start = sn_alloc(p->ctx, quote(p) - p->at + 1), *out = start;
    while (out != NULL) {
        unsigned char c = p->at < p->text.n ? (unsigned char)p->text.at[p->at] : 0;
        if (p->at >= p->text.n) {
            out = fail(p, "string without an end");
        } else if (c == '"') {
            p->at++;
            return (sn_text){start, (size_t)(out - start)};
        } else if (c == '\\') {
            p->at++;
            out = escape(p, out);
        } else if (c < ' ') {
            out = fail(p, "control character in a string");
        } else {
            size_t size = sn_utf8(p->text.at + p->at, p->text.n - p->at);
            if (size == 0) {
                out = fail(p, "not UTF-8");
            } else {
                memcpy(out, p->text.at + p->at, size);
                out += size;
                p->at += size;
            }
        }
    }
    return (sn_text){NULL, 0};
}

/* Reads all characters that can be part of a number, then checks the grammar. The
 * text is copied, because strtod needs a zero at the end. */
static sn_value *number(parser *p) {
    size_t end = p->at;
    while (end < p->text.n && p->text.at[end] != 0 && strchr("+-.0123456789eE", p->text.at[end]) != NULL) end++;
    sn_text text = {p->text.at + p->at, end - p->at};
    if (!sn_is_number(text)) return fail(p, "expected a number");
    p->at = end;
    text = sn_copy(p->ctx, text.at, text.n);
    return text.at == NULL ? NULL : sn_make(p->ctx, SN_NUMBER, text);
}

/* Reads a value that is not a list or an object. */
static sn_value *scalar(parser *p) {
    int c = next(p);
    if (c == '"') {
        sn_text text = string(p);
        return text.at == NULL ? NULL : sn_make(p->ctx, SN_STRING, text);
    }
    if (c == '-' || (c >= '0' && c <= '9')) return number(p);
    static const char *const words[] = {"null", "false", "true"};
    for (size_t i = 0; i < SN_COUNT(words); i++) {
        size_t n = strlen(words[i]);
        if (p->text.n - p->at >= n && memcmp(p->text.at + p->at, words[i], n) == 0) {
            p->at += n;
            return i == 0 ? sn_null(p->ctx) : sn_bool(p->ctx, i == 2);
        }
    }
    return fail(p, c < 0 ? "unexpected end" : "expected a value");
}

/* Reads the name of a field, and the colon. */
static bool name(parser *p) {
    if (next(p) != '"') return fail(p, "expected a key") != NULL;
    sn_text text = string(p);
    if (text.at == NULL) return false;
    p->open[p->depth - 1].name = text;
    return accept(p, ':') || fail(p, "expected :") != NULL;
}

/* Any total order of names, for qsort. */
static int by_name(const void *a, const void *b) {
    const sn_text *x = &(*(const sn_item *const *)a)->name, *y = &(*(const sn_item *const *)b)->name;
    int order = memcmp(x->at, y->at, x->n < y->n ? x->n : y->n);
    return order != 0 ? order : (x->n > y->n) - (x->n < y->n);
}

/* Reports whether an object has a duplicate name. Names are sorted: comparing all
 * pairs takes seconds for the largest text that a host may send. */
static bool twice(parser *p, const sn_value *object) {
    if (object->count < 2) return false;
    const sn_item **items = malloc(object->count * sizeof *items);
    if (items == NULL) {
        sn_out_of_memory(p->ctx);
        return true;
    }
    size_t n = 0;
    for (const sn_item *item = object->first; item != NULL; item = item->next) items[n++] = item;
    qsort(items, n, sizeof *items, by_name);
    bool found = false;
    for (size_t i = 1; i < n && !found; i++) found = by_name(&items[i - 1], &items[i]) == 0;
    free(items);
    return found;
}

/* Begins a list or object; false if it is one without items, or for an error. */
static bool begin(parser *p, int c, sn_value **value) {
    *value = NULL;
    if (p->depth == SN_MAX_DEPTH) return fail(p, "nested too deeply") != NULL;
    p->at++;
    sn_value *v = c == '[' ? sn_list(p->ctx) : sn_object(p->ctx);
    if (v == NULL) return false;
    if (accept(p, c == '[' ? ']' : '}')) {
        *value = v;
        return false;
    }
    p->open[p->depth++] = (level){.value = v};
    return c == '[' || name(p);
}

/* Reads values until the outermost one has ended. */
const sn_value *sn_parse(sn_ctx *ctx, sn_text text) {
    parser p = {.ctx = ctx, .text = text};
    for (;;) {
        sn_value *v = NULL;
        int c = next(&p);
        if (c == '[' || c == '{') {
            if (begin(&p, c, &v)) continue;
        } else {
            v = scalar(&p);
        }
        /* The value ends here, and so may the values that contain it. */
        for (;;) {
            if (v == NULL || ctx->spent) return NULL;
            if (p.depth == 0) return next(&p) < 0 ? v : fail(&p, "text after the value");
            level *l = &p.open[p.depth - 1];
            bool list = l->value->kind == SN_LIST;
            sn_append(ctx, l->value, l->name, v);
            if (accept(&p, ',')) {
                if (!list && !name(&p)) return NULL;
                break;
            }
            if (!accept(&p, list ? ']' : '}')) return fail(&p, list ? "expected , or ]" : "expected , or }");
            if (!list && twice(&p, l->value)) return fail(&p, "duplicate key");
            v = l->value;
            p.depth--;
        }
    }
}
