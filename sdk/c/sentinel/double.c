/* Doubles, in a file of their own, so that plugins without them do not link it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "internal.h"

bool sn_as_double(const sn_value *v, double *out) {
    if (sn_kind_of(v) != SN_NUMBER) return false;
    char *end = NULL;
    double d = strtod(v->text.at, &end);
    if (!isfinite(d) || end != v->text.at + v->text.n) return false;
    *out = d;
    return true;
}

sn_value *sn_double(sn_ctx *ctx, double d) {
    if (!isfinite(d)) return sn_null(ctx);
    char text[32];
    /* The fewest digits that are read as the same number: 0.1 and not
     * 0.10000000000000001. Seventeen are always enough. */
    for (int precision = 15; precision <= 17; precision++) {
        snprintf(text, sizeof text, "%.*g", precision, d);
        if (strtod(text, NULL) == d) break;
    }
    sn_text copy = sn_copy(ctx, text, sn_str(text).n);
    return copy.at == NULL ? NULL : sn_make(ctx, SN_NUMBER, copy);
}
