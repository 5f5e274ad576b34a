/* Texts. */
#include <string.h>

#include "internal.h"

sn_text sn_str(const char *c) { return (sn_text){c, c == NULL ? 0 : strlen(c)}; }

bool sn_same(sn_text a, sn_text b) { return a.n == b.n && (a.n == 0 || memcmp(a.at, b.at, a.n) == 0); }

/* The valid lead and continuation bytes are those of the Unicode standard, table 3-7:
 * no surrogates, no overlong forms. */
size_t sn_utf8(const char *p, size_t n) {
    const unsigned char *b = (const unsigned char *)p;
    if (n == 0) return 0;
    if (b[0] < 0x80) return 1;
    size_t size = b[0] >= 0xc2 && b[0] < 0xe0 ? 2 : b[0] >= 0xe0 && b[0] < 0xf0 ? 3 : b[0] >= 0xf0 && b[0] < 0xf5 ? 4 : 0;
    if (size == 0 || size > n) return 0;
    for (size_t i = 1; i < size; i++) {
        if ((b[i] & 0xc0) != 0x80) return 0;
    }
    bool odd = (b[0] == 0xe0 && b[1] < 0xa0) || (b[0] == 0xed && b[1] > 0x9f) || (b[0] == 0xf0 && b[1] < 0x90) || (b[0] == 0xf4 && b[1] > 0x8f);
    return odd ? 0 : size;
}

/* Writes n backwards into digits, which has 24 bytes, and returns its start. */
static const char *decimal(int64_t n, char *digits) {
    uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;
    char *p = digits + 23;
    *p = 0;
    do {
        *--p = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest > 0);
    if (n < 0) *--p = '-';
    return p;
}

/* Formats into out, which has cap bytes, and returns the length of the result. It
 * supports the verbs of sn_format; the one of libc links 20 KB for doubles. */
static size_t put(char *out, size_t cap, const char *format, va_list args) {
    size_t n = 0;
    char digits[24];
    for (const char *f = format; *f != 0; f++) {
        sn_text piece = {f, 1};
        if (*f == '%') {
            f++;
            if (strncmp(f, ".*s", 3) == 0) {
                int size = va_arg(args, int);
                piece = (sn_text){va_arg(args, const char *), size < 0 ? 0 : (size_t)size};
                f += 2;
            } else if (*f == 's') {
                piece = sn_str(va_arg(args, const char *));
            } else if (*f == 'd') {
                piece = sn_str(decimal(va_arg(args, int), digits));
            } else if (strncmp(f, "lld", 3) == 0) {
                piece = sn_str(decimal(va_arg(args, long long), digits));
                f += 2;
            } else if (strncmp(f, "zu", 2) == 0) {
                piece = sn_str(decimal((int64_t)va_arg(args, size_t), digits));
                f += 1;
            } else {
                piece = (sn_text){f, *f == 0 ? 0 : 1};
                if (*f == 0) f--;
            }
        }
        for (size_t i = 0; i < piece.n; i++, n++) {
            if (n < cap) out[n] = piece.at[i];
        }
    }
    return n;
}

sn_text sn_vformat(sn_ctx *ctx, const char *format, va_list args) {
    va_list again;
    va_copy(again, args);
    size_t n = put(NULL, 0, format, args);
    char *p = sn_alloc(ctx, n + 1);
    if (p != NULL) put(p, n, format, again);
    va_end(again);
    return p == NULL ? (sn_text){NULL, 0} : (sn_text){p, n};
}

sn_text sn_format(sn_ctx *ctx, const char *format, ...) {
    va_list args;
    va_start(args, format);
    sn_text text = sn_vformat(ctx, format, args);
    va_end(args);
    return text;
}
