package execution

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// errf returns an error with a code for the caller.
func errf(code abi.Code, format string, args ...any) *abi.Error {
	return &abi.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
