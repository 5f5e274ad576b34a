package step

import (
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// callLog handles a call of ABI clause A6.14. Lines that a replay repeats are not
// reported again.
func (a *attempt) callLog(request []byte) wasm.Reply {
	var req struct {
		Level   string `json:"level"`
		Message string `json:"message"`
	}
	reply := wasm.Reply{Body: []byte(`{"ok":{}}`)}
	if err := strictjson.Decode(request, &req, requestLimits); err != nil {
		c := &call{done: make(chan struct{})}
		c.answer(nil, failure.New(abi.BadFields, "%s: %v", abi.FuncLog, err), time.Time{})
		return c.reply()
	}
	a.mu.Lock()
	a.guestLogs++
	seen := a.guestLogs <= a.logs
	if !seen {
		a.logs = a.guestLogs
	}
	a.mu.Unlock()
	if !seen {
		a.log(req.Level, req.Message)
	}
	return reply
}
