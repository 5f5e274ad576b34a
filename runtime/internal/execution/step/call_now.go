package step

import (
	"context"
	"time"
)

// callNow handles a call of ABI clause A6.15: it returns the current time.
func (a *attempt) callNow(context.Context, *call) (callEnd, error) {
	now := time.Now().UTC()
	return reply(struct {
		UnixMs int64  `json:"unixMs"`
		ISO    string `json:"iso"`
	}{now.UnixMilli(), now.Format("2006-01-02T15:04:05.000Z")})
}
