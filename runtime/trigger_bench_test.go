package runtime_test

import (
	"fmt"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
)

// BenchmarkTriggers arms 2,000 sentinels on a real store and lists the next fire
// times of all.
func BenchmarkTriggers(b *testing.B) {
	const n = 2000
	kinds := new(fakeTriggers)
	opt := runtime.Options{Dir: b.TempDir(), CacheDir: cacheDir, Triggers: kinds.set()}
	opt.Commands = newFakeHost()
	rt, err := runtime.Open(b.Context(), opt)
	if err != nil {
		b.Fatal(err)
	}
	defer rt.Close()
	if err := runtime.AddModule(rt, steps()); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		def := decode(b, rt, fmt.Sprintf(`{"id":"s%d","name":"s","loop":{"type":"once"},"steps":[%s],"trigger":{"type":"manual","n":1}}`, i, quick))
		if _, err := rt.Save(b.Context(), def, 0); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("arm", func(b *testing.B) {
		for b.Loop() {
			if err := rt.Arm(b.Context()); err != nil {
				b.Fatal(err)
			}
			rt.Disarm()
		}
	})
	list := func(b *testing.B) {
		for b.Loop() {
			infos, err := rt.Triggers("")
			if err != nil || len(infos) != n || infos[n-1].Next.IsZero() {
				b.Fatal(len(infos), err)
			}
		}
	}
	b.Run("list not armed", list)
	if err := rt.Arm(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Run("list armed", list)
}

// BenchmarkFire admits fires that start nothing, one after the other and durably.
func BenchmarkFire(b *testing.B) {
	for name, trigger := range map[string]string{
		"filtered": `"trigger":{"type":"test","filter":"$event.n < 0"}`,
		"skipped":  `"trigger":{"type":"test"}`,
	} {
		b.Run(name, func(b *testing.B) {
			kinds := new(fakeTriggers)
			opt := runtime.Options{Dir: b.TempDir(), CacheDir: cacheDir, Triggers: kinds.set()}
			opt.Commands = newFakeHost()
			rt, err := runtime.Open(b.Context(), opt)
			if err != nil {
				b.Fatal(err)
			}
			defer rt.Close()
			if err := runtime.AddModule(rt, steps()); err != nil {
				b.Fatal(err)
			}
			s := serving{Runtime: rt, fakeTriggers: kinds}
			s.save(b, "a", trigger)
			if err := rt.Arm(b.Context()); err != nil {
				b.Fatal(err)
			}
			s.fire(b, "a", 0, fired(0))
			n := 0
			for b.Loop() {
				n++
				f := fired(n)
				f.Key, f.State = fmt.Sprint(n), fmt.Append(nil, n)
				if adm := s.fire(b, sentinels.ID("a"), 0, f); adm.Outcome == triggers.Started && n > 1 {
					b.Fatalf("%+v", adm)
				}
			}
		})
	}
}
