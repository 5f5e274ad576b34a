package dispatch

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func errf(code abi.Code, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// messageOf is the text of an error without what callers wrapped around its code.
func messageOf(err error) string {
	if e := abi.As(err); e != nil {
		return e.Message
	}
	return err.Error()
}
