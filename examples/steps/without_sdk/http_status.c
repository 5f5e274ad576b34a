// http_status: a step type in C, without an SDK and without a C library. It asks a
// server for a page and outputs its status:
//
//   {"type": "http_status", "url": "https://example.com/health", "outputTo": "health"}
//
// Clauses (A1.1) are those of sdk/ABI.md. Texts live in the call memory, outside
// the module's own memory, and are read there byte by byte: an addr is the address
// of a byte, and the address of a block's first byte is the block's handle (A1.7).

typedef unsigned long long addr;

#define KERNEL(name) __attribute__((import_module("extism:host/env"), import_name(name)))
#define HOST(name) __attribute__((import_module("extism:host/user"), import_name(name)))
#define EXPORT(name) __attribute__((export_name(name)))

KERNEL("alloc") addr alloc(addr size);
KERNEL("load_u8") int load(addr at);
KERNEL("store_u8") void store(addr at, int byte);
KERNEL("input_offset") addr input(void);
KERNEL("length") addr length(addr block);
KERNEL("output_set") void output_set(addr block, addr size);
KERNEL("error_set") void error_set(addr block);
HOST("sentinel_http") addr sentinel_http(addr request);

// A piece of a text: a constant, or the bytes from one address up to another.
typedef struct { const char *constant; addr from, to; } piece;

// join makes one text of n pieces. The block has just the size of the text, for
// the host takes the length of a request and of an error from its block.
static addr join(int n, const piece *p) {
	addr size = 0, text, at;
	for (int i = 0; i < n; i++) {
		size += p[i].to - p[i].from;
		for (const char *c = p[i].constant; c && *c; c++) size++;
	}
	at = text = alloc(size);
	for (int i = 0; i < n; i++) {
		for (const char *c = p[i].constant; c && *c; c++) store(at++, *c);
		for (addr from = p[i].from; from < p[i].to; from++) store(at++, load(from));
	}
	return text;
}

// fail ends the step with an error object (A1.4).
static int fail(addr text) { error_set(text); return 1; }

// succeed ends an export with its output.
static int succeed(addr text) { output_set(text, length(text)); return 0; }

// behind returns the address behind the string that begins at p.
static addr behind(addr p) {
	while (load(++p) != '"')
		if (load(p) == '\\') p++;
	return p + 1;
}

// end returns the address of the comma or bracket that ends the value at p.
static addr end(addr p) {
	for (int depth = 0;;) {
		int c = load(p);
		if (c == '"') { p = behind(p); continue; }
		if (depth == 0 && (c == ',' || c == ']' || c == '}')) return p;
		depth += (c == '[' || c == '{') - (c == ']' || c == '}');
		p++;
	}
}

// is reports whether the string at p is a key.
static int is(addr p, const char *key) {
	while (*key && load(++p) == *key) key++;
	return !*key && load(p + 1) == '"';
}

// space returns the address of the first byte behind p that is no white space.
static addr space(addr p) {
	while (load(++p) <= ' ') {}
	return p;
}

// member returns the address of a member's value in the object at p, 0 if it is
// not there.
static addr member(addr p, const char *key) {
	if (!p) return 0;
	do { // p is at the bracket or comma before a key
		p = space(p);
		if (load(p) != '"') return 0; // no members
		int found = is(p, key);
		p = space(space(behind(p) - 1)); // over the colon, to the value
		if (found) return p;
		p = end(p);
	} while (load(p) == ',');
	return 0;
}

// describe writes the manifest (A1.1). What the step type asks for is in it: the
// host refuses a module that imports sentinel_http and does not ask (A2.4).
EXPORT("describe") int describe(void) {
	return succeed(join(1, &(piece){
		"{\"name\":\"http_status\",\"version\":\"1.0.0\",\"abi\":1,"
		"\"permissions\":[{\"use\":\"http\",\"names\":[\"example.com\"],\"reason\":\"To ask the server for its status.\"}],"
		"\"steps\":[{\"type\":\"http_status\",\"summary\":\"Outputs the HTTP status of a page.\",\"readOnly\":true,"
		"\"fields\":{\"type\":\"object\",\"properties\":{\"url\":{\"type\":\"string\"}},\"required\":[\"url\"],\"additionalProperties\":false}}]}"}));
}

// run reads the field url (A3), makes one host call (A6.13) and writes the output
// (A4): {"url", "status", "up"}.
EXPORT("run") int run(void) {
	addr url = member(member(member(input(), "step"), "fields"), "url");
	if (!url) return fail(join(1, &(piece){"{\"code\":\"bad_fields\",\"message\":\"url is missing\",\"field\":\"url\"}"}));
	piece given = {0, url, end(url)};
	addr answer = sentinel_http(join(3, (piece[]){{"{\"method\":\"HEAD\",\"url\":"}, given, {"}"}}));
	addr error = member(answer, "error");
	if (error) return fail(join(1, &(piece){0, error, end(error)})); // denied, unavailable, ...: the host's own words
	addr status = member(member(answer, "ok"), "status");
	const char *up = load(status) == '2' || load(status) == '3' ? ",\"up\":true}}" : ",\"up\":false}}";
	return succeed(join(5, (piece[]){{"{\"output\":{\"url\":"}, given, {",\"status\":"}, {0, status, end(status)}, {up}}));
}
