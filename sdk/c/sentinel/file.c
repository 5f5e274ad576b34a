/* Files in folders that are granted to the plugin, A6.16. */
#include "internal.h"

SN_IMPORT(sentinel_file)

/* The keys that every operation has. */
static sn_value *at(sn_ctx *ctx, const char *folder, const char *op, const char *path) {
    sn_value *request = sn_object(ctx);
    sn_set_str(ctx, request, "folder", folder);
    sn_set_str(ctx, request, "op", op);
    if (path != NULL && path[0] != 0) sn_set_str(ctx, request, "path", path);
    return request;
}

static const sn_value *call(sn_ctx *ctx, const sn_value *request) { return sn_call(ctx, "sentinel_file", sentinel_file, request); }

bool sn_read_file(sn_ctx *ctx, const char *folder, const char *path, int64_t offset, int64_t length, sn_part *out) {
    sn_value *request = at(ctx, folder, "read", path);
    sn_set_int(ctx, request, "offset", offset);
    sn_set_int(ctx, request, "length", length);
    const sn_value *answer = call(ctx, request);
    if (answer == NULL) return false;
    *out = (sn_part){
        .text = sn_text_of(sn_get(answer, "text")),
        .base64 = sn_same(sn_text_of(sn_get(answer, "encoding")), sn_str("base64")),
        .truncated = sn_bool_or(sn_get(answer, "truncated"), false),
        .size = sn_int_or(sn_get(answer, "size"), 0),
    };
    return true;
}

/* No text and an empty text both write an empty file. */
static bool write(sn_ctx *ctx, sn_value *request, sn_text text, int64_t *size) {
    sn_set_text(ctx, request, "text", text.at == NULL ? sn_str("") : text);
    const sn_value *answer = call(ctx, request);
    if (size != NULL) *size = sn_int_or(sn_get(answer, "size"), 0);
    return answer != NULL;
}

bool sn_write_file(sn_ctx *ctx, const char *folder, const char *path, sn_text text, int64_t *size) {
    return write(ctx, at(ctx, folder, "write", path), text, size);
}

bool sn_write_bytes(sn_ctx *ctx, const char *folder, const char *path, sn_text bytes, int64_t *size) {
    sn_value *request = at(ctx, folder, "write", path);
    sn_set_str(ctx, request, "encoding", "base64");
    return write(ctx, request, sn_base64(ctx, bytes), size);
}

/* An answer has at most 1,000 entries. */
bool sn_list_files(sn_ctx *ctx, const char *folder, const char *path, int64_t offset, sn_listing *out) {
    sn_value *request = at(ctx, folder, "list", path);
    sn_set_int(ctx, request, "offset", offset);
    const sn_value *answer = call(ctx, request), *list = sn_get(answer, "entries");
    sn_entry *entries = answer == NULL ? NULL : sn_alloc(ctx, sn_count(list) * sizeof *entries);
    if (entries == NULL) return false;
    *out = (sn_listing){.entries = entries, .count = sn_count(list), .truncated = sn_bool_or(sn_get(answer, "truncated"), false)};
    for (const sn_item *item = sn_items(list); item != NULL; item = item->next, entries++) {
        *entries = (sn_entry){
            .name = sn_text_of(sn_get(item->value, "name")),
            .dir = sn_bool_or(sn_get(item->value, "dir"), false),
            .size = sn_int_or(sn_get(item->value, "size"), 0),
            .modified = sn_get(item->value, "modified"),
        };
    }
    return true;
}

/* A missing file is an answer, not an error. */
bool sn_stat_file(sn_ctx *ctx, const char *folder, const char *path, sn_stat *out) {
    const sn_value *answer = call(ctx, at(ctx, folder, "stat", path));
    *out = (sn_stat){
        .exists = sn_bool_or(sn_get(answer, "exists"), false),
        .dir = sn_bool_or(sn_get(answer, "dir"), false),
        .size = sn_int_or(sn_get(answer, "size"), 0),
        .modified = sn_get(answer, "modified"),
    };
    return answer != NULL;
}

bool sn_remove_file(sn_ctx *ctx, const char *folder, const char *path) { return call(ctx, at(ctx, folder, "remove", path)) != NULL; }
