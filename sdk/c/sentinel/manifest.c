/* The manifest of a plugin, A2. */
#include <string.h>

#include "internal.h"

/* Checks a name against A2.1. */
static bool named(sn_ctx *ctx, const char *what, const char *name) {
    size_t n = name == NULL ? 0 : strlen(name);
    bool fits = n > 0 && n <= 64;
    for (size_t i = 0; i < n; i++) {
        bool letter = name[i] >= 'a' && name[i] <= 'z';
        fits = fits && (letter || (i > 0 && ((name[i] >= '0' && name[i] <= '9') || name[i] == '_')));
    }
    return fits || sn_fail(ctx, SN_PLUGIN, "describe %s \"%s\": want a name of a-z, 0-9 and _ that begins with a letter", what, name) != NULL;
}

/* A list of names; absent, and so omitted, for NULL. */
static sn_value *names(sn_ctx *ctx, const char *const *list) {
    if (list == NULL) return NULL;
    sn_value *v = sn_list(ctx);
    for (; *list != NULL; list++) sn_push(ctx, v, sn_string(ctx, sn_str(*list)));
    return v;
}

/* A schema is read, so that a mistake in it is reported here, instead of making the
 * whole manifest invalid. */
static const sn_value *schema_of(sn_ctx *ctx, const sn_step *step, const char *what, const char *text) {
    const sn_value *schema = sn_parse(ctx, sn_str(text));
    if (schema != NULL) return schema;
    sn_text why = ctx->error.message;
    return sn_fail(ctx, SN_PLUGIN, "describe %s of step type \"%s\": %.*s", what, step->type, (int)why.n, why.at);
}

static sn_value *describe_step(sn_ctx *ctx, const sn_step *step) {
    if (!named(ctx, "step type", step->type)) return NULL;
    const sn_value *schema = schema_of(ctx, step, "schema", step->fields), *output = NULL;
    if (schema == NULL) return NULL;
    if (step->output != NULL && (output = schema_of(ctx, step, "output schema", step->output)) == NULL) return NULL;
    if (!sn_same(sn_text_of(sn_get(schema, "type")), sn_str("object")))
        return sn_fail(ctx, SN_PLUGIN, "describe schema of step type \"%s\": want \"type\": \"object\"", step->type);
    sn_value *v = sn_object(ctx);
    sn_set_str(ctx, v, "type", step->type);
    sn_set_str(ctx, v, "summary", step->summary == NULL ? "" : step->summary);
    sn_set(ctx, v, "fields", schema);
    sn_set(ctx, v, "output", output);
    sn_set(ctx, v, "infer", names(ctx, step->infer));
    if (step->aliases != NULL) {
        sn_value *aliases = sn_object(ctx);
        for (const char *const *a = step->aliases; a[0] != NULL && a[1] != NULL; a += 2) sn_set_str(ctx, aliases, a[0], a[1]);
        sn_set(ctx, v, "aliases", aliases);
    }
    sn_set_true(ctx, v, "readOnly", step->read_only);
    if (step->provides.as != NULL) {
        sn_value *provides = sn_object(ctx);
        sn_set_str(ctx, provides, "as", step->provides.as);
        if (step->provides.name != NULL) sn_set_str(ctx, provides, "name", step->provides.name);
        sn_set(ctx, v, "provides", provides);
    }
    return v;
}

/* Built again on every new instance: it depends only on the plugin. */
sn_text sn_describe(sn_ctx *ctx, const sn_plugin *plugin) {
    const sn_text none = {NULL, 0};
    if (!named(ctx, "plugin", plugin->name)) return none;
    sn_value *v = sn_object(ctx), *steps = sn_list(ctx), *permissions = sn_list(ctx);
    for (size_t i = 0; i < plugin->step_count; i++) {
        sn_value *step = describe_step(ctx, &plugin->steps[i]);
        if (step == NULL) return none;
        sn_push(ctx, steps, step);
    }
    for (size_t i = 0; i < plugin->permission_count; i++) {
        const sn_permission *from = &plugin->permissions[i];
        sn_value *permission = sn_object(ctx);
        sn_set_str(ctx, permission, "use", from->use);
        sn_set(ctx, permission, "names", names(ctx, from->names));
        sn_set_str(ctx, permission, "reason", from->reason);
        sn_push(ctx, permissions, permission);
    }
    sn_set_str(ctx, v, "name", plugin->name);
    sn_set_str(ctx, v, "version", plugin->version);
    sn_set(ctx, v, "abi", sn_int(ctx, SN_ABI));
    sn_set(ctx, v, "steps", steps);
    if (plugin->permission_count > 0) sn_set(ctx, v, "permissions", permissions);
    sn_set_true(ctx, v, "stateless", plugin->stateless);
    sn_text text = sn_print(ctx, v);
    return ctx->spent ? none : text;
}
