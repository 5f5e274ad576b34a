package author

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/plugintest"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// A Function is one import or export of a module.
type Function struct {
	Name string `json:"name"` // imports: "extism:host/user sentinel_http"
	Type string `json:"type"` // "(i64) -> i64", or the kind of anything else
}

// A Report describes a module. For an invalid one it has what could
// be read until then, and the reason.
type Report struct {
	File      string          `json:"file,omitempty"`
	Size      int             `json:"size"`
	Digest    string          `json:"digest"`
	Manifest  *guest.Manifest `json:"manifest,omitempty"`
	Uses      []string        `json:"uses,omitempty"` // host functions that it imports
	Imports   []Function      `json:"imports,omitempty"`
	Exports   []Function      `json:"exports,omitempty"`
	Signature string          `json:"signature,omitempty"` // in words; "" if it was not checked
	// CompileMs is how long scan, compile and describe took without a cache.
	CompileMs   float64    `json:"compileMs,omitempty"`
	MemoryBytes int64      `json:"memoryBytes,omitempty"` // of an instance before its first step
	Problem     *abi.Error `json:"problem,omitempty"`
}

// Options configure the inspection of a module. The zero value works.
type Options struct {
	// Signature describes who signed the module of a file. Default: it is not
	// is asked.
	Signature func(file string, module []byte) string
}

// Inspect reads a module, then compiles and describes it, in a host of its own
// without a cache, so that the time it takes is the first user's. What is wrong
// with the module is in the report; the error says that it could not be tried.
func Inspect(ctx context.Context, file string, module []byte, opt Options) (Report, error) {
	sum := sha256.Sum256(module)
	r := Report{File: file, Size: len(module), Digest: hex.EncodeToString(sum[:])}
	if opt.Signature != nil {
		r.Signature = opt.Signature(file, module)
	}
	info, err := guest.Inspect(module)
	for _, im := range info.Imports {
		r.Imports = append(r.Imports, Function{im.Module + " " + im.Name, im.Type})
	}
	for _, ex := range info.Exports {
		r.Exports = append(r.Exports, Function{ex.Name, ex.Type})
	}
	if err != nil {
		r.Problem = problem(err)
		return r, nil
	}
	h, err := guest.Open(guest.Options{})
	if err != nil {
		return r, err
	}
	err = r.try(ctx, h, module)
	return r, errors.Join(err, h.Close())
}

// try loads the module. A ctx that ended is no fault of it.
func (r *Report) try(ctx context.Context, h *guest.Host, module []byte) error {
	begin := time.Now()
	p, err := plugintest.Load(ctx, h, module, guest.LoadOptions{})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.Problem = problem(err)
		return nil
	}
	defer p.Close()
	r.CompileMs = millis(time.Since(begin))
	manifest := p.Module.Manifest()
	r.Manifest, r.Uses = &manifest, p.Module.Functions()
	// A step of no type ends before it begins and shows what an instance has by then.
	res, _ := p.Module.Run(ctx, guest.Invocation{Input: fmt.Appendf(nil, `{"abi":%d,"step":{"type":"","fields":{}}}`, abi.Version), ClockBase: sdktest.Base})
	r.MemoryBytes = res.MemoryBytes
	return nil
}

func problem(err error) *abi.Error {
	if e := abi.As(err); e != nil {
		return e
	}
	return abi.New(abi.BadFields, err.Error())
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
