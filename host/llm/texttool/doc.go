// Package texttool reads tool calls out of a model's text, for models that have
// no native ones, and tells such a model how to write them.
//
// Four forms are read. Two are marked and mean a call whatever tool they name:
//
//	<tool_call>{"name": "code/read", "arguments": {"path": "a.go"}}</tool_call>
//	<function=code/read>{"path": "a.go"}</function>
//
// and so is a fenced block with the info string tool_call. Two are plain JSON,
// a fenced block that says json or nothing, and a reply that is one JSON value.
// Those are a call only if they name an offered tool and have no keys but those
// of a call, since a model may well answer with data that has a "name".
//
// Text is only read when tools were offered, and it stays what it is: the
// caller holds every call to the step's tools and their schemas.
package texttool
