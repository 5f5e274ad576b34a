// Package sentinel implements the commands on sentinels and runs: define, start, stop,
// pause, resume, decide, inspect and transfer.
//
// # Bundles
//
// A bundle is one JSON document with sentinels, their kept revisions if wanted, and the
// plugins that they need:
//
//	{"format": 1,
//	 "sentinels": [{"sentinelId": "build-fix", "definition": {...}, "revisions": [...]}],
//	 "plugins": [{"name": "slack", "version": "1.2", "digest": "..."}]}
//
// sentinel/export returns one, and sentinel/import stores all of it or nothing.
// sentinel/deploy writes definitions, recipes and plugins as files of another project.
//
//	bundle.go        the document and its decoder
//	references.go    what definitions refer to: other sentinels, recipes
//	rename.go        another id, in all references of a bundle
//	requirements.go  the sentinels, recipes and plugins that a sentinel needs
package sentinel
