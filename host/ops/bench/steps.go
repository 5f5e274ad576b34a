package bench

import (
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// page is what one commit writes at least.
const page = 4096

// fsyncs measures n writes of a page, each synced, on the disk of dir.
func fsyncs(dir string, samplesWanted, n int) (samples, error) {
	f, err := os.Create(filepath.Join(dir, "fsync"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, at := make([]byte, page), int64(0)
	return repeat(samplesWanted, time.Millisecond, 1, func() error {
		for range n {
			if _, err := f.WriteAt(data, at%(256*page)); err != nil {
				return err
			}
			if err := f.Sync(); err != nil {
				return err
			}
			at += page
		}
		return nil
	})
}

// threeSteps is a run of three effects on the disk: it waits for four commits.
func threeSteps(b *bench) (f figure, err error) {
	dir, err := b.folder()
	if err != nil {
		return f, err
	}
	f.reference = "4 writes of a page with fsync"
	if f.beside, err = fsyncs(dir, b.count(200), 4); err != nil {
		return f, err
	}
	rt, err := b.engine(filepath.Join(dir, "state"))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	def, err := calls(rt, 3, act)
	if err != nil {
		return f, err
	}
	f.samples, err = repeat(b.count(300), time.Millisecond, 1, func() error { return b.carryOut(rt, def) })
	return f, err
}

// pooledStep is one step of a long run in memory, so the run's own beginning
// and end hardly count.
func pooledStep(b *bench) (f figure, err error) {
	const n = 100
	rt, err := b.engine("")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	def, err := calls(rt, n, look)
	if err != nil {
		return f, err
	}
	probe, fields := rt.Probe(), json.RawMessage(`{"command":"bench/look","params":{"value":1,"text":"step 7"}}`)
	f.reference = "its guest without the engine"
	f.beside, err = repeat(b.count(100), time.Microsecond, n, func() error {
		for range n {
			if _, err := probe.Guest(b.ctx, "command", fields, json.RawMessage(`{"success":true,"value":1}`)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return f, err
	}
	f.samples, err = repeat(b.count(100), time.Microsecond, n, func() error { return b.carryOut(rt, def) })
	return f, err
}

// echo is a guest of 926 bytes that answers its input, from hand-written
// WebAssembly; its source is runtime/internal/wasm/testdata/wat/echo.wat.
//
//go:embed echo.wasm
var echo []byte

// others opens an engine with a foreign plugin and measures its guest,
// each time after what before returns.
func (b *bench) others(before func(runtime.Probe) (runtime.Probe, error)) (s samples, err error) {
	rt, err := b.engine("", plugin.Source{Name: "echo.wasm", Wasm: func() ([]byte, error) { return echo, nil }})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	for i := range b.count(1000) + 1 {
		probe, err := before(rt.Probe())
		if err != nil {
			return nil, err
		}
		began := time.Now()
		if _, err := probe.Guest(b.ctx, "echo", json.RawMessage(`{"text":"hello"}`), json.RawMessage(`{}`)); err != nil {
			return nil, err
		}
		if i > 0 { // the first one warms up
			s = append(s, float64(time.Since(began))/float64(time.Microsecond))
		}
	}
	return s, nil
}

// freshGuest makes an instance for each call.
func freshGuest(b *bench) (f figure, err error) {
	f.samples, err = b.others(func(p runtime.Probe) (runtime.Probe, error) { return p, nil })
	return f, err
}

// aheadGuest finds one that is ready, as a step of a run does unless many begin
// at once.
func aheadGuest(b *bench) (f figure, err error) {
	f.reference = "with an instance made for the call"
	if f.beside, err = b.others(func(p runtime.Probe) (runtime.Probe, error) { return p, nil }); err != nil {
		return f, err
	}
	f.samples, err = b.others(func(p runtime.Probe) (runtime.Probe, error) {
		for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Microsecond) {
			if ready, ok := p.Ahead("echo"); ok {
				return ready, nil
			}
		}
		return p, errors.New("no instance is made ahead")
	})
	return f, err
}

// throughput is 64 runs at once of effects on the disk.
func throughput(b *bench) (f figure, err error) {
	const runs, n = 64, 20
	dir, err := b.folder()
	if err != nil {
		return f, err
	}
	f.reference = "fsyncs of a page a second, one writer"
	single, err := fsyncs(dir, b.count(500), 1)
	if err != nil {
		return f, err
	}
	f.beside = samples{1000 / single.at(0.5)}
	rt, err := b.engine(filepath.Join(dir, "state"))
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, rt.Close()) }()
	def, err := calls(rt, n, act)
	if err != nil {
		return f, err
	}
	took, err := repeat(b.count(30), time.Second, 1, func() error {
		errs := make([]error, runs)
		var wg sync.WaitGroup
		for i := range runs {
			wg.Go(func() { errs[i] = b.carryOut(rt, def) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	for _, t := range took {
		f.samples = append(f.samples, runs*n/t)
	}
	return f, err
}
