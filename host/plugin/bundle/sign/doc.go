// Package sign proves who made a STEP PLUGIN: it signs modules and checks
// signatures, in the form that the minisign tool writes and reads.
//
// A signature is a text of four lines beside the module, FILE.wasm.minisig. Its
// trusted comment, which is signed too, names the module:
//
//	sentinel plugin slack_message version:1.2.0 file:slack_message.wasm sha256:… timestamp:…
//
// Signatures that minisign itself made have another comment and are as good: what
// counts is the key and the bytes. The comment is used for error messages.
package sign
