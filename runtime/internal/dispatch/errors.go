package dispatch

import (
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// messageOf is the text of an error without what callers wrapped around its code.
func messageOf(err error) string {
	if e := abi.As(err); e != nil {
		return e.Message
	}
	return err.Error()
}
