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
// The words of the files are in an index (package codeindex), which each call that
// ranks files compares with the workspace first. Which files have a word is taken from
// the index, text always from the files.
package rag
