/* What the files of grep_count share. */
#ifndef COUNT_H
#define COUNT_H

#include "sdk/sentinel.h"

/* How patterns are taken. */
typedef struct {
    bool glob;        /* *, ? and [a-z], for a whole line; else a plain text anywhere in it */
    bool ignore_case; /* of a to z; other letters count as they are */
    bool word;        /* what is before and after a match belongs to no word */
} options;

/* How often the pattern is in the line: its places one after the other, or 1 if
 * the line is what a glob says. */
int64_t occurrences(sn_text line, sn_text pattern, const options *how);
/* Reports whether a name is what a glob says, * not across a slash. */
bool fits_name(sn_text name, sn_text glob);

/* What was found for one pattern. */
typedef struct {
    sn_text pattern;
    int64_t count, lines;
} found;

/* Everything that was found so far. */
typedef struct {
    options how;
    found *patterns;
    size_t pattern_count;
    int64_t lines;    /* in which any pattern is */
    int64_t files;    /* that were searched */
    int64_t skipped;  /* that were binary or too large */
    int64_t limit;    /* how many matches are shown */
    sn_value *shown;  /* list of {path?, line, text, patterns} */
    bool truncated;   /* there are more than are shown */
} tally;

/* Searches a text, line by line; path is that of its file, or none. */
void search(sn_ctx *ctx, tally *t, sn_text path, sn_text text);
/* Searches a file or folder of the granted folder; false: ctx->error says why. */
bool search_files(sn_ctx *ctx, tally *t, const char *path, sn_text glob);

#endif
