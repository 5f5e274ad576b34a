package author

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/plugintest"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// A Figure is one thing that was measured.
type Figure struct {
	What   string  `json:"what"`
	Millis float64 `json:"ms,omitempty"`    // median
	Worst  float64 `json:"p95Ms,omitempty"` // 95th of a hundred
	N      int     `json:"n,omitempty"`     // how often
	Bytes  int64   `json:"bytes,omitempty"` // instead of a time
	Note   string  `json:"note"`
}

// Bench measures one step of a module, n times, 1 or more, for each way to run it: what
// loading costs, and what of a step's time is the instance and what the step
// itself. Host calls are answered at once by fakes.
func Bench(ctx context.Context, module []byte, in func(*plugintest.Plugin) (sdktest.Input, error), fakes []sdktest.Fake, n int) ([]Figure, error) {
	b := bench{module: module, input: in, fakes: fakes, n: n}
	cache, err := os.MkdirTemp("", "plugin-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	defer os.RemoveAll(cache)
	b.figures = append(b.figures, Figure{What: "module", Bytes: int64(len(module)), Note: "what is distributed and compiled"})
	cold, err := b.load(ctx, guest.Options{CacheDir: cache}, guest.LoadOptions{}, "load, first time", "scan, rewrite, compile, describe: once for each version on a machine", nil)
	if err != nil {
		return nil, err
	}
	fresh, err := b.load(ctx, guest.Options{CacheDir: cache}, guest.LoadOptions{}, "load, from the cache", "once for each start of the host", b.fresh)
	if err != nil {
		return nil, err
	}
	if !cold.manifest.Stateless {
		b.figures = append(b.figures, Figure{What: "step, reused instance", Note: "not to be had: the plugin does not say that it is stateless"})
		return b.figures, nil
	}
	again, err := b.load(ctx, guest.Options{CacheDir: cache}, guest.LoadOptions{Reuse: true}, "", "", b.reused)
	if err != nil {
		return nil, err
	}
	b.figures = append(b.figures, Figure{What: "the step's own part", Millis: again.step, N: b.n,
		Note: fmt.Sprintf("%.0f%% of a step on a fresh instance; the rest is instance and describe", 100*again.step/max(fresh.step, 0.001))})
	return b.figures, nil
}

type bench struct {
	module  []byte
	input   func(*plugintest.Plugin) (sdktest.Input, error)
	fakes   []sdktest.Fake
	n       int
	figures []Figure
}

// loaded is what one way to load a module came to.
type loaded struct {
	manifest guest.Manifest
	step     float64 // median, of the steps that then gave
}

// load times a load in a host of its own, then the steps that then makes. An
// unnamed load is not shown.
func (b *bench) load(ctx context.Context, opt guest.Options, how guest.LoadOptions, what, note string, then func(context.Context, *plugintest.Plugin) (float64, error)) (l loaded, err error) {
	h, err := guest.Open(opt)
	if err != nil {
		return l, err
	}
	defer func() { err = errors.Join(err, h.Close()) }()
	begin := time.Now()
	p, err := plugintest.Load(ctx, h, b.module, how)
	if err != nil {
		return l, err
	}
	defer p.Close()
	if what != "" {
		b.figures = append(b.figures, Figure{What: what, Millis: millis(time.Since(begin)), N: 1, Note: note})
	}
	l.manifest = p.Module.Manifest()
	if then != nil {
		l.step, err = then(ctx, p)
	}
	return l, err
}

func (b *bench) fresh(ctx context.Context, p *plugintest.Plugin) (float64, error) {
	return b.steps(ctx, p, "step, fresh instance", "instance, describe and step: what a plugin's step costs by default")
}

func (b *bench) reused(ctx context.Context, p *plugintest.Plugin) (float64, error) {
	return b.steps(ctx, p, "step, reused instance", "after `sentinel plugin allow NAME --reuse`")
}

// steps executes the step n times, after a few that warm up caches, and
// returns the median.
func (b *bench) steps(ctx context.Context, p *plugintest.Plugin, what, note string) (float64, error) {
	in, err := b.input(p)
	if err != nil {
		return 0, err
	}
	var times []float64
	var memory int64
	calls := 0
	for i := range b.n + min(b.n, 5) {
		out, err := sdktest.Execute(ctx, p, in, sdktest.Answers(b.fakes))
		if err != nil {
			return 0, err
		}
		if err := ctx.Err(); err != nil {
			return 0, context.Cause(ctx)
		}
		if out.Error != nil {
			e := *out.Error
			e.Message = "bench: the step ends with an error: " + e.Message
			if e.Code == abi.Denied {
				e.Hint = "`sentinel plugin call` shows which calls it makes; answer them with --fake FILE"
			}
			return 0, &e
		}
		if i >= min(b.n, 5) {
			times = append(times, out.DurationMs)
		}
		memory, calls = max(memory, out.MemoryBytes), len(out.Calls)
	}
	slices.Sort(times)
	f := Figure{What: what, Millis: times[len(times)/2], Worst: times[min(len(times)-1, len(times)*95/100)], N: b.n, Note: note}
	if calls > 0 {
		f.Note += fmt.Sprintf("; %d host calls, answered at once", calls)
	}
	b.figures = append(b.figures, f, Figure{What: "memory after it", Bytes: memory, Note: "linear memory of one instance"})
	return f.Millis, nil
}
