/* Going through lines, and through the files of the granted folder. */
#include <stdlib.h>
#include <string.h>

#include "count.h"

/* A file larger than this is left out: it is in memory as a whole, and a guest
 * has 64 MiB. */
static const int64_t LARGEST = 8 << 20;
/* How many files are searched at most. Each takes two calls of the host or so,
 * and an attempt has 10,000. */
static const int64_t MOST_FILES = 2000;
/* How deep folders are gone into. */
enum { DEEPEST = 16 };
/* How much of a line is shown, in bytes. */
static const size_t SHOWN = 200;

/* Adds a line to those that are shown. Only this makes anything that is kept. */
static void show(sn_ctx *ctx, tally *t, sn_text path, int64_t number, sn_text line, const bool *in) {
    if ((int64_t)sn_count(t->shown) >= t->limit) {
        t->truncated = true;
        return;
    }
    sn_value *match = sn_object(ctx), *patterns = sn_list(ctx);
    for (size_t i = 0; i < t->pattern_count; i++) {
        if (in[i]) sn_push(ctx, patterns, sn_string(ctx, t->patterns[i].pattern));
    }
    size_t n = line.n < SHOWN ? line.n : SHOWN;
    while (n < line.n && n > 0 && (line.at[n] & 0xc0) == 0x80) n--; /* never half a character */
    sn_set(ctx, match, "path", sn_string(ctx, path));
    sn_set(ctx, match, "line", sn_int(ctx, number));
    sn_set(ctx, match, "text", sn_string(ctx, sn_copy(ctx, line.at, n)));
    sn_set(ctx, match, "patterns", patterns);
    sn_push(ctx, t->shown, match);
}

void search(sn_ctx *ctx, tally *t, sn_text path, sn_text text) {
    bool *in = sn_alloc(ctx, t->pattern_count);
    if (in == NULL) return;
    int64_t number = 0;
    for (size_t start = 0; start < text.n;) {
        const char *newline = memchr(text.at + start, '\n', text.n - start);
        size_t end = newline == NULL ? text.n : (size_t)(newline - text.at);
        sn_text line = {text.at + start, end - start};
        if (line.n > 0 && line.at[line.n - 1] == '\r') line.n--;
        bool any = false;
        number++;
        for (size_t i = 0; i < t->pattern_count; i++) {
            int64_t n = occurrences(line, t->patterns[i].pattern, &t->how);
            in[i] = n > 0;
            t->patterns[i].count += n;
            t->patterns[i].lines += in[i];
            any = any || in[i];
        }
        t->lines += any;
        if (any) show(ctx, t, path, number, line, in);
        start = end + 1;
    }
    t->files++;
}

/* Reads a file into out, which has room for size bytes, and sets *n to how many
 * there are. A file may grow or shrink meanwhile. */
static bool read_whole(sn_ctx *ctx, const char *path, char *out, size_t size, size_t *n) {
    bool more = true;
    while (more) {
        sn_mark mark = sn_here(ctx);
        sn_part part;
        if (!sn_read_file(ctx, "data", path, (int64_t)*n, 0, &part)) return false;
        sn_text bytes = part.base64 ? sn_unbase64(ctx, part.text) : part.text;
        if (ctx->spent) return false;
        if (bytes.at == NULL) return sn_fail(ctx, SN_INTERNAL, "read %s: the host's base64 is none", path) != NULL;
        size_t take = bytes.n < size - *n ? bytes.n : size - *n;
        memcpy(out + *n, bytes.at, take);
        *n += take;
        more = part.truncated && take > 0 && *n < size;
        sn_back_to(ctx, mark);
    }
    return true;
}

static bool search_file(sn_ctx *ctx, tally *t, const char *path, int64_t size) {
    if (t->files + t->skipped >= MOST_FILES)
        return sn_fail(ctx, SN_LIMIT, "there are more than %lld files: name a path or a glob", (long long)MOST_FILES) != NULL;
    if (size > LARGEST) {
        t->skipped++;
        return true;
    }
    /* Not of the context: what is shown stays in that, and would keep this too. */
    char *bytes = malloc((size_t)size + 1);
    if (bytes == NULL) return sn_fail(ctx, SN_MEMORY, "read %s: there is no memory for %lld bytes", path, (long long)size) != NULL;
    size_t n = 0;
    bool ok = read_whole(ctx, path, bytes, (size_t)size, &n);
    if (ok && memchr(bytes, 0, n) != NULL) {
        t->skipped++; /* binary */
    } else if (ok) {
        search(ctx, t, sn_str(path), (sn_text){bytes, n});
    }
    free(bytes);
    return ok;
}

static bool search_folder(sn_ctx *ctx, tally *t, const char *path, sn_text glob, int depth) {
    sn_listing list = {.truncated = true};
    for (int64_t offset = 0; list.truncated; offset += (int64_t)list.count) {
        if (!sn_list_files(ctx, "data", path, offset, &list)) return false;
        for (size_t i = 0; i < list.count; i++) {
            const sn_entry *e = &list.entries[i];
            sn_text below = sn_format(ctx, "%s%s%.*s", path, path[0] == 0 ? "" : "/", (int)e->name.n, e->name.at);
            if (below.at == NULL) return false;
            /* Without matches to keep, a file leaves nothing behind. */
            sn_mark mark = sn_here(ctx);
            size_t before = sn_count(t->shown);
            bool ok = true;
            if (e->dir && depth < DEEPEST && e->name.at[0] != '.') {
                ok = search_folder(ctx, t, below.at, glob, depth + 1);
            } else if (!e->dir && fits_name(e->name, glob)) {
                ok = search_file(ctx, t, below.at, e->size);
            }
            if (!ok) return false;
            if (sn_count(t->shown) == before) sn_back_to(ctx, mark);
        }
        if (list.count == 0) break;
    }
    return true;
}

bool search_files(sn_ctx *ctx, tally *t, const char *path, sn_text glob) {
    sn_stat stat;
    if (!sn_stat_file(ctx, "data", path, &stat)) return false;
    if (!stat.exists) {
        sn_fail(ctx, SN_NOT_FOUND, "path: nothing is at \"%s\" of the folder data", path);
        if (!ctx->spent) ctx->error.field = sn_str("path");
        return false;
    }
    return stat.dir ? search_folder(ctx, t, path, glob, 0) : search_file(ctx, t, path, stat.size);
}
