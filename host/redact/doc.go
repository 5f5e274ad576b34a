// Package redact takes registered secrets out of what the process writes:
// errors, logs, the journal, the trace, events, the output of programs and cassettes.
//
// A [Redactor] knows secrets by value and looks for each in the forms in which
// they turn up: as it is, escaped for JSON (once and twice) and HTML,
// percent-encoded (whichever characters the encoder chose, once and twice), in
// hex, in base64 at each of the three alignments a neighbour can shift it to,
// and each of these in lower case, as names of HTTP headers are. A secret of
// several lines is also known by each line, and a structured one (JSON,
// KEY=value, a URL with a password) by each of its leaves.
//
// It does not guess: a secret that was not registered is not found, and neither
// is one that was reversed, split, encrypted or otherwise encoded.
package redact
