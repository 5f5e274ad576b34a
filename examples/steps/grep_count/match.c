/* Comparing a line with a pattern. */
#include "count.h"

static char fold(char c, bool ignore_case) { return ignore_case && c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }

/* Letters beyond ASCII are of several bytes, all with the highest bit: they count
 * as part of a word. */
static bool in_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || (c & 0x80) != 0;
}

static bool at(sn_text line, size_t from, sn_text pattern, const options *how) {
    if (line.n - from < pattern.n) return false;
    for (size_t i = 0; i < pattern.n; i++) {
        if (fold(line.at[from + i], how->ignore_case) != fold(pattern.at[i], how->ignore_case)) return false;
    }
    size_t end = from + pattern.n;
    return !how->word || ((from == 0 || !in_word(line.at[from - 1])) && (end == line.n || !in_word(line.at[end])));
}

/* Compares a character with the class that begins at p, behind its bracket, and
 * sets *end behind the class; *end is 0 for a bracket that is never closed. */
static bool in_class(char c, sn_text pattern, size_t p, const options *how, size_t *end) {
    bool negated = p < pattern.n && (pattern.at[p] == '!' || pattern.at[p] == '^'), found = false;
    size_t first = p += negated;
    *end = 0;
    for (; p < pattern.n; p++) {
        char low = pattern.at[p], high = low;
        if (low == ']' && p > first) {
            *end = p + 1;
            return found != negated;
        }
        if (p + 2 < pattern.n && pattern.at[p + 1] == '-' && pattern.at[p + 2] != ']') {
            high = pattern.at[p + 2];
            p += 2;
        }
        unsigned char x = (unsigned char)fold(c, how->ignore_case);
        found = found || (x >= (unsigned char)fold(low, how->ignore_case) && x <= (unsigned char)fold(high, how->ignore_case));
    }
    return false;
}

/* Compares all of a text with a glob. The last * met takes as little as it can,
 * and more each time that what follows does not fit: time is of the order of the
 * product of both lengths, whatever the pattern. ? is one character of UTF-8.
 * Neither goes across stop, -1 for nothing. */
static bool glob(sn_text text, sn_text pattern, const options *how, int stop) {
    size_t t = 0, p = 0, star = 0, from = 0;
    bool starred = false;
    while (t < text.n) {
        size_t end = 0;
        char c = p < pattern.n ? pattern.at[p] : 0;
        if (c == '*') {
            starred = true;
            star = ++p;
            from = t;
            continue;
        }
        if (c == '?' && text.at[t] != stop) {
            t++;
            while (t < text.n && (text.at[t] & 0xc0) == 0x80) t++;
            p++;
            continue;
        }
        if (c == '[' && in_class(text.at[t], pattern, p + 1, how, &end)) {
            t++;
            p = end;
            continue;
        }
        /* A bracket that is never closed stands for itself. */
        bool literal = p < pattern.n && c != '?' && (c != '[' || end == 0);
        if (literal && fold(c, how->ignore_case) == fold(text.at[t], how->ignore_case)) {
            t++;
            p++;
            continue;
        }
        if (!starred || text.at[from] == stop) return false;
        p = star;
        t = ++from;
    }
    while (p < pattern.n && pattern.at[p] == '*') p++;
    return p == pattern.n;
}

int64_t occurrences(sn_text line, sn_text pattern, const options *how) {
    if (how->glob) return glob(line, pattern, how, -1);
    int64_t n = 0;
    for (size_t i = 0; pattern.n > 0 && i + pattern.n <= line.n;) {
        bool here = at(line, i, pattern, how);
        n += here;
        i += here ? pattern.n : 1;
    }
    return n;
}

bool fits_name(sn_text name, sn_text pattern) {
    const options plain = {0};
    return glob(name, pattern, &plain, '/');
}
