package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
)

// BenchmarkDefinitions reads 5,000 definitions of about 1 KB, as a list of all
// sentinels does; decoded also has each of them read.
func BenchmarkDefinitions(b *testing.B) {
	db, err := store.Open(b.Context(), b.TempDir(), store.Options{})
	if err != nil {
		b.Fatal(err)
	}
	rt := open(b, newFakeHost(), db, runtime.Options{})
	long := strings.Repeat("x", 900)
	const many = 5000
	errs := make(chan error, many)
	for i := range many {
		def := decode(b, rt, fmt.Sprintf(`{"id":"d%d","name":"d","steps":[{"type":"call","command":"world/look","value":%q}]}`, i, long))
		go func() { // so that they share commits
			_, err := rt.Save(context.Background(), def, 0)
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			b.Fatal(err)
		}
	}
	for _, decoded := range []bool{false, true} {
		b.Run(fmt.Sprintf("decoded=%t", decoded), func(b *testing.B) {
			for range b.N {
				all, err := rt.Definitions()
				if err != nil || len(all) != many {
					b.Fatal(len(all), err)
				}
				for _, s := range all {
					if decoded {
						if _, err := rt.Decoded(s); err != nil {
							b.Fatal(err)
						}
					}
				}
			}
		})
	}
}
