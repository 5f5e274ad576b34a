/* What the files of the guest share. */
#include "sdk/sentinel.h"

/* kit_call, in call.c. */
const sn_value *call(sn_ctx *ctx);
