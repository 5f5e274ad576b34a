package sdk

import "github.com/sentinel-runtime/sentinel/sdk/abi"

// Now returns the host's time, in milliseconds since 1970 and as RFC 3339. It
// is recorded: a replay returns the same time.
func (c *Context) Now() (unixMs int64, iso string, err error) {
	answer, err := c.call(abi.FuncNow, importNow, Object())
	if err != nil {
		return 0, "", err
	}
	return answer.Get("unixMs").IntOr(0), answer.Get("iso").StringOr(""), nil
}
