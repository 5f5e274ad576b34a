package wire

import "net/http"

// Kind says where a turn failed.
type Kind int

// The kinds of failure.
const (
	Transport Kind = iota // no answer: refused, reset, DNS, TLS
	Status                // an answer with a status of 300 or more
	Event                 // an error inside the stream
	Broken                // the stream ended early or made no sense
	TooLarge              // more than MaxAnswer
	TooMany               // more than MaxCalls
	NotReply              // an answer that is none of the protocol
)

// A Failure is a turn that got no complete answer. Message is the provider's
// own text and may hold anything.
type Failure struct {
	Kind    Kind
	Status  int
	Header  http.Header
	Type    string // the provider's class: "overloaded_error", "invalid_request_error"
	Code    string // the provider's code: "context_length_exceeded"
	Message string
	Err     error // the cause, if there is one
	Usage   Usage // what had been counted when it failed: a broken stream is still paid for
	Sent    int   // bytes of text, thinking and calls that had come by then
}

// Error returns the provider's message or the cause.
func (f *Failure) Error() string {
	if f.Message != "" {
		return f.Message
	}
	if f.Err != nil {
		return f.Err.Error()
	}
	return http.StatusText(f.Status)
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }
