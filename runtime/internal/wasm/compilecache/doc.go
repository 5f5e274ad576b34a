// Package compilecache keeps the compiled code of plugins in a folder, and what is
// known about loading them. Package wasm compiles into it and loads from it.
//
// Each module has a folder, named by its digest, with
//
//   - the files that the engine writes, which it names by its version and processor;
//   - a seal for code that a child process compiled: the list of the files with their
//     checksums. Code without a seal, or with a damaged file, is compiled again
//     (seal.go);
//   - refusals: the loads that exceeded a limit, so that they are not repeated at each
//     start (refusal.go);
//   - a marker for each manifest whose schemas a child compiled (schemas.go).
//
// The content of the folder is executed as machine code. A folder that another user
// owns or can write to is therefore rejected.
//
// # Concurrency
//
// A [Cache] is safe for concurrent use, also by several processes: files are written
// elsewhere and renamed, and two processes that compile a module write the same bytes.
package compilecache
