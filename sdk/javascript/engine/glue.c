/* The exports of a JavaScript plugin, ABI.md A1, for QuickJS. The API of scripts is
   in prelude.js; this file passes texts between it and the host. */

#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "quickjs.h"
#include "prelude.h" /* prelude.js as an array, made by the build */

#define KERNEL(name) __attribute__((import_module("extism:host/env"), import_name(#name)))
KERNEL(alloc) uint64_t kernel_alloc(uint64_t size);
KERNEL(free) void kernel_free(uint64_t handle);
KERNEL(length) uint64_t kernel_length(uint64_t handle);
KERNEL(load_u8) uint32_t kernel_load8(uint64_t address);
KERNEL(load_u64) uint64_t kernel_load64(uint64_t address);
KERNEL(store_u8) void kernel_store8(uint64_t address, uint32_t byte);
KERNEL(store_u64) void kernel_store64(uint64_t address, uint64_t word);
KERNEL(input_length) uint64_t kernel_input_length(void);
KERNEL(input_load_u8) uint32_t kernel_input8(uint64_t offset);
KERNEL(input_load_u64) uint64_t kernel_input64(uint64_t offset);
KERNEL(output_set) void kernel_output(uint64_t handle, uint64_t size);
KERNEL(error_set) void kernel_error(uint64_t handle);

/* The order is that of the constant calls in prelude.js and of Funcs in package
   abi. The build of a plugin removes the imports that it does not request. */
#define HOST(f) __attribute__((import_module("extism:host/user"), import_name("sentinel_" #f))) uint64_t host_##f(uint64_t);
#define ALL(x) x(command) x(llm) x(watch) x(eval) x(var) x(block) x(spawn) x(emit) x(wait) x(checkpoint) x(http) x(log) x(now) x(file)
ALL(HOST)
#define ENTRY(f) host_##f,
static uint64_t (*const host[])(uint64_t) = {ALL(ENTRY)};
enum { host_count = sizeof host / sizeof *host };

/* The build of a plugin adds the script as a data segment here. The memory is zeroed,
   so that the engine without a script stays small. The volatile keeps the compiler
   from assuming the zeroes. */
enum { script_capacity = 512 << 10 };
struct script {
	uint32_t linked;    /* bit n is set: host[n] is imported */
	uint32_t name_size; /* of the file's name, which comes first, with its NUL */
	uint32_t size;      /* of the source behind it, without its NUL */
	char text[script_capacity];
};
__attribute__((used, visibility("default"))) struct script sentinel_script;
__attribute__((used, visibility("default"))) const uint32_t sentinel_script_capacity = script_capacity;

/* What deep recursion may use of the stack, which is 1 MiB; the rest is for the
   C code that notices. */
enum { stack_limit = 768 << 10 };

/* The one plugin of this instance. It lives as long as the instance does. */
static JSRuntime *runtime;
static JSContext *context;
static JSValue plugin; /* {describe, run, validate, settle} of prelude.js */

/* ---- memory ---- */

/* The library's own functions do not count what they give out on this target, and
   a count is what starts its collector. */
static void *count_malloc(JSMallocState *s, size_t size)
{
	void *p = malloc(size);
	if (p) {
		s->malloc_count++;
		s->malloc_size += malloc_usable_size(p);
	}
	return p;
}

static void count_free(JSMallocState *s, void *p)
{
	if (!p)
		return;
	s->malloc_count--;
	s->malloc_size -= malloc_usable_size(p);
	free(p);
}

static void *count_realloc(JSMallocState *s, void *p, size_t size)
{
	if (!p)
		return size ? count_malloc(s, size) : NULL;
	if (!size) {
		count_free(s, p);
		return NULL;
	}
	size_t before = malloc_usable_size(p);
	void *q = realloc(p, size);
	if (q)
		s->malloc_size += malloc_usable_size(q) - before;
	return q;
}

static size_t count_size(const void *p) { return malloc_usable_size((void *)p); }

static const JSMallocFunctions memory = {count_malloc, count_free, count_realloc, count_size};

/* ---- texts ---- */

static uint64_t store(const char *text, size_t size)
{
	uint64_t handle = kernel_alloc(size);
	size_t i = 0;
	for (; i + 8 <= size; i += 8) {
		uint64_t word;
		memcpy(&word, text + i, 8);
		kernel_store64(handle + i, word);
	}
	for (; i < size; i++)
		kernel_store8(handle + i, (uint8_t)text[i]);
	return handle;
}

static void set_output(const char *text, size_t size) { kernel_output(store(text, size), size); }
static void set_error(const char *text, size_t size) { kernel_error(store(text, size)); }

/* take copies the block behind a handle into the engine and frees it. */
static JSValue take(uint64_t handle)
{
	size_t size = handle ? kernel_length(handle) : 0, i = 0;
	char *buffer = malloc(size + 8);
	if (!buffer)
		return JS_ThrowOutOfMemory(context);
	for (; i + 8 <= size; i += 8) {
		uint64_t word = kernel_load64(handle + i);
		memcpy(buffer + i, &word, 8);
	}
	for (; i < size; i++)
		buffer[i] = (char)kernel_load8(handle + i);
	if (handle)
		kernel_free(handle);
	JSValue text = JS_NewStringLen(context, buffer, size);
	free(buffer);
	return text;
}

static JSValue input(void)
{
	size_t size = kernel_input_length(), i = 0;
	char *buffer = malloc(size + 8);
	if (!buffer)
		return JS_ThrowOutOfMemory(context);
	for (; i + 8 <= size; i += 8) {
		uint64_t word = kernel_input64(i);
		memcpy(buffer + i, &word, 8);
	}
	for (; i < size; i++)
		buffer[i] = (char)kernel_input8(i);
	JSValue text = JS_NewStringLen(context, buffer, size);
	free(buffer);
	return text;
}

/* ---- functions for prelude.js ---- */

/* call(n, request): the answer's text. */
static JSValue js_call(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	uint32_t n;
	size_t size;
	if (JS_ToUint32(ctx, &n, argv[0]))
		return JS_EXCEPTION;
	if (n >= host_count || !(sentinel_script.linked >> n & 1))
		return JS_ThrowRangeError(ctx, "host function %u is not linked", (unsigned)n);
	const char *request = JS_ToCStringLen(ctx, &size, argv[1]);
	if (!request)
		return JS_EXCEPTION;
	uint64_t in = store(request, size);
	JS_FreeCString(ctx, request);
	uint64_t out = host[n](in);
	kernel_free(in);
	return take(out);
}

/* random(): 53 random bits, seeded per attempt, from 0 to below 1. */
static JSValue js_random(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	uint64_t bits;
	if (getentropy(&bits, sizeof bits))
		return JS_ThrowInternalError(ctx, "no randomness");
	return JS_NewFloat64(ctx, (double)(bits >> 11) / 9007199254740992.0);
}

/* trace(text): to standard error, for the plugin's author. */
static JSValue js_trace(JSContext *ctx, JSValueConst this, int argc, JSValueConst *argv)
{
	size_t size;
	const char *text = JS_ToCStringLen(ctx, &size, argv[0]);
	if (!text)
		return JS_EXCEPTION;
	ssize_t written = write(STDERR_FILENO, text, size); /* a short write does not matter to the step */
	(void)written;
	JS_FreeCString(ctx, text);
	return JS_UNDEFINED;
}

static JSModuleDef *no_modules(JSContext *ctx, const char *name, void *opaque)
{
	JS_ThrowReferenceError(ctx, "import of '%s': a plugin is one file; use a bundler", name);
	return NULL;
}

/* ---- failures ---- */

/* quote appends text as the inside of a JSON string; what does not fit is left out. */
static size_t quote(char *to, size_t at, size_t most, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	for (; *text && at + 6 < most; text++) {
		unsigned char c = *text;
		if (c == '"' || c == '\\') {
			to[at++] = '\\';
			to[at++] = c;
		} else if (c < 0x20) {
			memcpy(to + at, "\\u00", 4);
			to[at + 4] = hex[c >> 4];
			to[at + 5] = hex[c & 15];
			at += 6;
		} else
			to[at++] = c;
	}
	return at;
}

/* failed makes the pending exception the error of the export. prelude.js catches
   errors of a step. This function reports the others: no memory or stack is left, or
   the script is invalid. */
static int failed(const char *op)
{
	static char text[4096]; /* static, because no memory may be left */
	static const char out_of_memory[] = "out of memory";
	JSValue thrown = JS_GetException(context);
	const char *message = JS_ToCString(context, thrown);
	if (!message) {
		JS_FreeValue(context, JS_GetException(context));
		message = out_of_memory;
	}
	const char *code = strstr(message, out_of_memory) ? "memory" : strstr(message, "stack overflow") ? "trap" : "plugin";
	size_t at = 0, most = sizeof text - 32;
	memcpy(text, "{\"code\":\"", 9), at = 9;
	at = quote(text, at, most, code);
	memcpy(text + at, "\",\"message\":\"", 13), at += 13;
	at = quote(text, at, most, op);
	at = quote(text, at, most, ": ");
	at = quote(text, at, most, message);
	if (JS_IsError(context, thrown)) {
		JSValue stack = JS_GetPropertyStr(context, thrown, "stack");
		const char *trace = JS_IsString(stack) ? JS_ToCString(context, stack) : NULL;
		if (trace) {
			/* Only the first line, the position: a message is one line. */
			char place[256] = " ";
			size_t n = 1;
			while (*trace == ' ')
				trace++;
			for (; *trace && *trace != '\n' && n + 1 < sizeof place; n++)
				place[n] = *trace++;
			at = quote(text, at, most, n > 1 ? place : "");
		}
	}
	memcpy(text + at, "\",\"permanent\":true}", 19), at += 19;
	set_error(text, at);
	return 1;
}

/* ---- the plugin ---- */

/* work executes the pending jobs of promises. */
static int work(void)
{
	JSContext *ctx;
	int n;
	while ((n = JS_ExecutePendingJob(runtime, &ctx)) > 0)
		;
	return n;
}

/* evaluate runs the script, an ES module, to its end. */
static int evaluate(void)
{
	const char *name = sentinel_script.text, *source = sentinel_script.text + sentinel_script.name_size;
	JSValue done = JS_Eval(context, source, sentinel_script.size, name, JS_EVAL_TYPE_MODULE);
	if (JS_IsException(done) || work() < 0)
		return -1;
	switch (JS_PromiseState(context, done)) {
	case JS_PROMISE_PENDING:
		JS_ThrowInternalError(context, "the script awaits a promise that never settles: there is no event loop");
		return -1;
	case JS_PROMISE_REJECTED:
		JS_Throw(context, JS_PromiseResult(context, done));
		return -1;
	default:
		return 0;
	}
}

/* start creates the engine and evaluates the script, once for an instance. The host
   calls describe before run, so this has happened when a step begins. */
static int start(void)
{
	if (!sentinel_script.name_size) {
		static const char text[] = "{\"code\":\"plugin\",\"message\":\"this module is the engine alone: no script was put into it\"}";
		set_error(text, sizeof text - 1);
		return 1;
	}
	runtime = JS_NewRuntime2(&memory, NULL);
	context = runtime ? JS_NewContext(runtime) : NULL;
	if (!context) {
		static const char text[] = "{\"code\":\"memory\",\"message\":\"start engine: out of memory\"}";
		set_error(text, sizeof text - 1);
		return 1;
	}
	JS_SetMaxStackSize(runtime, stack_limit);
	JS_SetModuleLoaderFunc(runtime, NULL, no_modules, NULL);
	JSValue make = JS_Eval(context, (const char *)prelude, sizeof prelude - 1, "sentinel", JS_EVAL_TYPE_GLOBAL);
	if (JS_IsException(make))
		return failed("start engine");
	JSValue given = JS_NewObject(context);
	JS_SetPropertyStr(context, given, "call", JS_NewCFunction(context, js_call, "call", 2));
	JS_SetPropertyStr(context, given, "random", JS_NewCFunction(context, js_random, "random", 0));
	JS_SetPropertyStr(context, given, "trace", JS_NewCFunction(context, js_trace, "trace", 1));
	JS_SetPropertyStr(context, given, "linked", JS_NewUint32(context, sentinel_script.linked));
	JS_SetPropertyStr(context, given, "file", JS_NewString(context, sentinel_script.text));
	plugin = JS_Call(context, make, JS_UNDEFINED, 1, &given);
	JS_FreeValue(context, make);
	JS_FreeValue(context, given);
	if (JS_IsException(plugin))
		return failed("start engine");
	return evaluate() ? failed("load script") : 0;
}

/* finish reads [status, text] and sets it as the export's result. */
static int finish(JSValue result, const char *op)
{
	int32_t status;
	size_t size;
	if (JS_IsException(result))
		return failed(op);
	JSValue first = JS_GetPropertyUint32(context, result, 0), second = JS_GetPropertyUint32(context, result, 1);
	const char *text = JS_ToInt32(context, &status, first) ? NULL : JS_ToCStringLen(context, &size, second);
	if (!text)
		return failed(op);
	status ? set_error(text, size) : set_output(text, size);
	JS_FreeCString(context, text);
	JS_FreeValue(context, second);
	JS_FreeValue(context, result);
	return status;
}

/* invoke calls a function of prelude.js with the input of the export. */
static int invoke(const char *op, int with_input)
{
	if (!context) {
		int status = start();
		if (status)
			return status;
	}
	JS_UpdateStackTop(runtime);
	JSValue argument = with_input ? input() : JS_UNDEFINED;
	if (JS_IsException(argument))
		return failed(op);
	JSValue function = JS_GetPropertyStr(context, plugin, op);
	JSValue result = JS_Call(context, function, plugin, 1, &argument);
	JS_FreeValue(context, function);
	JS_FreeValue(context, argument);
	/* A step that is an async function has its result when no job is left. */
	if (JS_IsUndefined(result)) {
		if (work() < 0)
			return failed(op);
		function = JS_GetPropertyStr(context, plugin, "settle");
		result = JS_Call(context, function, plugin, 0, NULL);
		JS_FreeValue(context, function);
	}
	return finish(result, op);
}

__attribute__((export_name("describe"))) int32_t describe(void) { return invoke("describe", 0); }
__attribute__((export_name("run"))) int32_t run(void) { return invoke("run", 1); }
__attribute__((export_name("validate"))) int32_t validate(void) { return invoke("validate", 1); }
