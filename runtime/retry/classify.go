package retry

import (
	"context"
	"errors"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Classify classifies an error that crossed a boundary, by its code first.
// nil is the zero Classification.
func Classify(err *abi.Error) Classification {
	if err == nil {
		return Classification{}
	}
	c := classifyCode(err.Code, err.Message)
	c.Permanent = c.Permanent || err.Permanent
	return c
}

// ClassifyError classifies any error: the first [*abi.Error] in its chain by
// [Classify], a cancelled or expired context by what it is, all else by its
// text. nil is the zero Classification.
func ClassifyError(err error) Classification {
	if err == nil {
		return Classification{}
	}
	if e := abi.As(err); e != nil {
		return Classify(e)
	}
	if errors.Is(err, context.Canceled) {
		return classifyCode(abi.Cancelled, "")
	}
	var slow interface{ Timeout() bool } // context.DeadlineExceeded, errors of net and os
	if errors.As(err, &slow) && slow.Timeout() {
		return Classification{Category: Timeout, Subcategory: "general", Confidence: 1}
	}
	return ClassifyMessage(err.Error())
}

// classifyCode maps every code of package abi. Codes that say who reported the
// error rather than what it is, plugin and internal, leave it to the message.
func classifyCode(code abi.Code, msg string) Classification {
	known := func(category Category, sub string) Classification {
		return Classification{Category: category, Subcategory: sub, Confidence: 1}
	}
	permanent := func(category Category, sub string) Classification {
		return Classification{Category: category, Subcategory: sub, Confidence: 1, Permanent: true}
	}
	// closer takes the subcategory from the message if it agrees with the code.
	closer := func(category Category, sub string) Classification {
		if c := ClassifyMessage(msg); c.Category == category && c.Subcategory != "general" {
			sub = c.Subcategory
		}
		return known(category, sub)
	}
	switch code {
	case abi.BadFields:
		return permanent(Syntax, "fields")
	case abi.Denied:
		return permanent(ManualReview, "denied")
	case abi.Cancelled:
		return permanent(ManualReview, "cancelled")
	case abi.Interrupted:
		return permanent(ManualReview, "interrupted")
	case abi.Limit:
		// Too much text for a model is a limit too, and there one try with
		// another context can help. A cap of ours stays where it is.
		if c := ClassifyMessage(msg); c.Category == Context {
			return known(Context, c.Subcategory)
		}
		return permanent(ManualReview, "limit")
	case abi.NotFound:
		return known(Logic, "not_found")
	case abi.Conflict:
		return known(Logic, "conflict")
	case abi.Output:
		return known(Logic, "output")
	case abi.Timeout:
		return closer(Timeout, "execution")
	case abi.Unavailable:
		return closer(API, "unavailable")
	case abi.Trap:
		return known(Runtime, "trap")
	case abi.Memory:
		return known(Runtime, "memory")
	case abi.Internal:
		if c := ClassifyMessage(msg); c.Category != ManualReview {
			return c
		}
		return known(Runtime, "internal")
	}
	return ClassifyMessage(msg) // abi.Plugin, and codes of a newer version
}
