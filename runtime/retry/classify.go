package retry

import (
	"context"
	"errors"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// classify classifies an error by its code first.
func classify(err *abi.Error) Classification {
	c := classifyCode(err.Code, err.Message)
	c.Permanent = c.Permanent || err.Permanent
	return c
}

// ClassifyError classifies any error: the first [*abi.Error] in its chain by its code,
// cancellations and timeouts as such, all others by their text. nil has the zero
// Classification.
func ClassifyError(err error) Classification {
	if err == nil {
		return Classification{}
	}
	if e := abi.As(err); e != nil {
		return classify(e)
	}
	if errors.Is(err, context.Canceled) {
		return classifyCode(abi.Cancelled, "")
	}
	var timeout interface{ Timeout() bool } // context.DeadlineExceeded, errors of net and os
	if errors.As(err, &timeout) && timeout.Timeout() {
		return Classification{Category: Timeout, Subcategory: "general", Confidence: 1}
	}
	return ClassifyMessage(err.Error())
}

// classifyCode classifies every code of package abi. The codes plugin and internal
// only say who reported the error, so the message decides.
func classifyCode(code abi.Code, msg string) Classification {
	known := func(category Category, sub string) Classification {
		return Classification{Category: category, Subcategory: sub, Confidence: 1}
	}
	permanent := func(category Category, sub string) Classification {
		return Classification{Category: category, Subcategory: sub, Confidence: 1, Permanent: true}
	}
	// refine takes the subcategory from the message if the category agrees.
	refine := func(category Category, sub string) Classification {
		if c := ClassifyMessage(msg); c.Category == category && c.Subcategory != "general" {
			sub = c.Subcategory
		}
		return known(category, sub)
	}
	if status, ok := strings.CutPrefix(string(code), "http_"); ok {
		return classifyAnswer(status)
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
		// A model's context limit can be met by a retry with a smaller context. A
		// limit of the host stays exceeded.
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
		return refine(Timeout, "execution")
	case abi.Unavailable:
		return refine(API, "unavailable")
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
	return ClassifyMessage(msg) // abi.Plugin, and codes that this version does not know
}
