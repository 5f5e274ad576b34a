// Package rag builds the context of a model's prompt (retrieval-augmented
// generation) from the files of the workspace, the state of git, recent messages
// and failures. It builds $ragContext before an iteration and implements the
// commands rag/build and rag/search.
//
// A recipe is a list of sources. Each source is plain text, limited to its share of
// the context. Equal state gives equal text, so that a replay and a recorded model
// call find the same prompt again. Files that look like secrets are never included,
// links are never followed, and nothing outside the workspace is read.
//
// There is no index: rag/search reads the files that it ranks, at most 8 MiB of them
// for each call.
package rag
