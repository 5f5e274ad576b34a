package wasm

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// hostCall answers one host call and returns the handle of the reply. It unwinds the
// guest from this frame only. No other panic may pass through the guest, because
// wazero would add a stack trace of the host to the error.
func (c *call) hostCall(function string, handle uint64) uint64 {
	c.pauseCompute()
	defer c.resumeCompute()
	c.checkEnded()
	body, err := c.reply(function, handle)
	if err != nil {
		c.unwind(err)
	}
	out, err := c.inst.callMemory.Write(body)
	if err != nil {
		c.unwind(err)
	}
	return out
}

// reply returns the reply to a host call, or the error that unwinds the guest.
func (c *call) reply(function string, handle uint64) (body []byte, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			c.log(fmt.Sprintf("host call %s: %v", function, fault), fmt.Errorf("%s", debug.Stack()))
			body, err = nil, abi.New(abi.Internal, fmt.Sprintf("call %s: internal error of the host", function))
		}
	}()
	// Check the size before the request is copied.
	if n := c.inst.callMemory.Length(handle); n > uint64(c.limits.MessageBytes) {
		return errorReply(abi.Limit, fmt.Sprintf("call %s: a request of %d bytes, at most %d are allowed", function, n, c.limits.MessageBytes)), nil
	}
	request, ok := c.inst.callMemory.Read(handle)
	if !ok {
		return errorReply(abi.BadFields, fmt.Sprintf("call %s: handle %d is not the handle of a request", function, handle)), nil
	}
	text := c.handlesIn(request)
	if text.size > c.limits.MessageBytes {
		return errorReply(abi.Limit, fmt.Sprintf("call %s: a request of %d bytes, at most %d are allowed", function, text.size, c.limits.MessageBytes)), nil
	}
	request = text.whole()
	ctx := c.ctx
	if o := text.outline(); len(o.values) > 0 {
		ctx = context.WithValue(ctx, outlineKey{}, o)
	}
	if c.onCall == nil {
		return errorReply(abi.Denied, fmt.Sprintf("call %s: host calls are denied in this export", function)), nil
	}
	reply, err := c.onCall(ctx, function, request)
	if err != nil {
		return nil, err
	}
	c.inst.clock.AdvanceTo(reply.Now)
	if len(reply.Body) > c.limits.MessageBytes {
		return errorReply(abi.Limit, fmt.Sprintf("call %s: a reply of %d bytes, at most %d are allowed", function, len(reply.Body), c.limits.MessageBytes)), nil
	}
	return c.giveHandles(reply.Body)
}

// errorReply returns the reply {"error": ...}.
func errorReply(code abi.Code, message string) []byte {
	body, err := json.Marshal(map[string]*abi.Error{"error": abi.New(code, message)})
	if err != nil {
		panic(err) // strings always encode
	}
	return body
}
