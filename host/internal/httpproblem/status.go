package httpproblem

import (
	"net/http"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Status maps every code to its HTTP status. Servers and clients rely on it, so the
// status of a code must not change.
func Status(code abi.Code) int {
	switch code {
	case abi.BadFields:
		return http.StatusBadRequest
	case abi.Denied:
		return http.StatusForbidden
	case abi.NotFound:
		return http.StatusNotFound
	case abi.Conflict, abi.Cancelled, abi.Interrupted:
		return http.StatusConflict
	case abi.Timeout:
		return http.StatusGatewayTimeout
	case abi.Limit, abi.Memory:
		return http.StatusRequestEntityTooLarge
	case abi.Unavailable:
		return http.StatusServiceUnavailable
	case abi.Internal:
		return http.StatusInternalServerError
	}
	return http.StatusBadGateway // errors of plugins, also with codes of their own
}

// codeOf maps a status to a code, for a response without problem details, such as
// that of a proxy. A status that several codes share maps to the most general one.
func codeOf(status int) abi.Code {
	switch status {
	case http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusUnsupportedMediaType, http.StatusPreconditionRequired:
		return abi.BadFields
	case http.StatusUnauthorized, http.StatusForbidden:
		return abi.Denied
	case http.StatusNotFound:
		return abi.NotFound
	case http.StatusConflict, http.StatusPreconditionFailed:
		return abi.Conflict
	case http.StatusGatewayTimeout:
		return abi.Timeout
	case http.StatusRequestEntityTooLarge, http.StatusRequestHeaderFieldsTooLarge:
		return abi.Limit
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusTooManyRequests:
		return abi.Unavailable
	}
	return abi.Internal
}
