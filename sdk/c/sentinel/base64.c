/* Base64, the encoding of bytes that are not UTF-8 in requests and answers. */
#include "internal.h"

/* Three bytes are four digits; the last group is padded. */
sn_text sn_base64(sn_ctx *ctx, sn_text bytes) {
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t n = bytes.n / 3 * 4 + (bytes.n % 3 > 0 ? 4 : 0);
    char *out = sn_alloc(ctx, n + 1), *p = out;
    if (out == NULL) return (sn_text){NULL, 0};
    for (size_t i = 0; i < bytes.n; i += 3) {
        uint32_t word = 0;
        for (size_t k = 0; k < 3; k++) word = word << 8 | (i + k < bytes.n ? (unsigned char)bytes.at[i + k] : 0);
        for (size_t k = 0; k < 4; k++) *p++ = i + k <= bytes.n ? alphabet[word >> (18 - 6 * k) & 63] : '=';
    }
    return (sn_text){out, n};
}

/* The six bits of a character, -1 for an invalid one. */
static int digit(char c) {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

sn_text sn_unbase64(sn_ctx *ctx, sn_text text) {
    const sn_text none = {NULL, 0};
    size_t n = text.n;
    for (int i = 0; i < 2 && n > 0 && text.at[n - 1] == '='; i++) n--;
    if (text.n % 4 != 0 || n % 4 == 1) return none;
    char *out = sn_alloc(ctx, text.n / 4 * 3 + 1), *p = out;
    if (out == NULL) return none;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t word = 0;
        size_t have = n - i < 4 ? n - i : 4;
        for (size_t k = 0; k < have; k++) {
            int d = digit(text.at[i + k]);
            if (d < 0) return none;
            word |= (uint32_t)d << (18 - 6 * k);
        }
        /* A digit has six bits: two digits are one byte, three are two. */
        for (size_t k = 0; k + 1 < have; k++) *p++ = (char)(word >> (16 - 8 * k));
    }
    return (sn_text){out, (size_t)(p - out)};
}
