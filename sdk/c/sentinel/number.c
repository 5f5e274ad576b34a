/* Numbers with their text, so that no digits are lost. */
#include <string.h>

#include "internal.h"

/* The end of the digits that begin at i. */
static size_t digits(sn_text t, size_t i) {
    while (i < t.n && t.at[i] >= '0' && t.at[i] <= '9') i++;
    return i;
}

/* Checks a text against the grammar of JSON: no plus, no leading zeros, digits on both
 * sides of a point. */
bool sn_is_number(sn_text t) {
    size_t i = t.n > 0 && t.at[0] == '-' ? 1 : 0;
    size_t end = digits(t, i);
    if (end == i || (t.at[i] == '0' && end > i + 1)) return false;
    i = end;
    if (i < t.n && t.at[i] == '.') {
        end = digits(t, i + 1);
        if (end == i + 1) return false;
        i = end;
    }
    if (i < t.n && (t.at[i] == 'e' || t.at[i] == 'E')) {
        i++;
        if (i < t.n && (t.at[i] == '+' || t.at[i] == '-')) i++;
        end = digits(t, i);
        if (end == i) return false;
        i = end;
    }
    return i == t.n;
}

/* A number as significant digits, which are those of text from first to last
 * without the point, and the power of ten of the first one. Zero has none. */
typedef struct {
    const char *first, *last;
    bool negative;
    int64_t power;
} decimal;

/* A larger exponent is clamped. */
static const int64_t FAR = INT64_MAX / 4;

/* Parses a number; the text must be a number. */
static decimal read(sn_text t) {
    decimal d = {.negative = t.n > 0 && t.at[0] == '-'};
    size_t i = d.negative ? 1 : 0;
    int64_t power = -1; /* of the digit before the first one, after the point */
    bool whole = true;
    for (; i < t.n && t.at[i] != 'e' && t.at[i] != 'E'; i++) {
        if (t.at[i] == '.') {
            whole = false;
            continue;
        }
        if (t.at[i] != '0') {
            if (d.first == NULL) d.first = t.at + i;
            d.last = t.at + i;
        }
        if (whole && d.first != NULL) power++;
        if (!whole && d.first == NULL) power--;
    }
    if (d.first == NULL) return (decimal){0};
    int64_t exponent = 0;
    bool down = i + 1 < t.n && t.at[i + 1] == '-';
    for (; i < t.n; i++) {
        if (t.at[i] >= '0' && t.at[i] <= '9' && exponent < FAR / 10) exponent = exponent * 10 + (t.at[i] - '0');
    }
    d.power = power + (down ? -exponent : exponent);
    return d;
}

/* The next significant digit, 0 after the last one. */
static char next(const char **p, const char *last) {
    if (*p == NULL || *p > last) return 0;
    if (**p == '.') ++*p;
    return *(*p)++;
}

/* Compares digit by digit, so that numbers of any length and exponent are compared
 * exactly. */
bool sn_same_number(sn_text a, sn_text b) {
    decimal x = read(a), y = read(b);
    if (x.negative != y.negative || x.power != y.power) return false;
    for (;;) {
        char c = next(&x.first, x.last);
        if (c != next(&y.first, y.last)) return false;
        if (c == 0) return true;
    }
}

bool sn_as_int(const sn_value *v, int64_t *out) {
    if (sn_kind_of(v) != SN_NUMBER) return false;
    decimal d = read(v->text);
    if (d.first != NULL && (d.power < 0 || d.power > 18)) return false;
    /* One digit for each power of ten down to 1; more of them are a fraction. */
    uint64_t n = 0;
    for (int64_t power = d.power; d.first != NULL && power >= 0; power--) {
        char c = next(&d.first, d.last);
        n = n * 10 + (uint64_t)(c == 0 ? 0 : c - '0');
    }
    if (next(&d.first, d.last) != 0 || n > (uint64_t)INT64_MAX + (d.negative ? 1 : 0)) return false;
    /* Through unsigned: the lowest int64_t has no positive counterpart. */
    *out = d.negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}
