// Package rag builds the context of a model's prompt (retrieval-augmented
// generation) from the files of the workspace, the state of git, recent messages
// and failures. It builds $ragContext before an iteration and implements the
// commands rag/build and rag/search.
//
// A recipe is a list of sources. What a source gives is plain text, cut to its
// share of the whole; equal state gives equal text, so a replay or a cassette
// is not upset by chance. Files that look like secrets are never included,
// links are never followed, and nothing outside the workspace is read.
//
// There is no index yet: rag/search reads the files it ranks, at most 8 MiB of
// them for each call.
package rag
