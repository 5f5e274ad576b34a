package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// BenchmarkLargeValue passes a text of a megabyte through ten steps. The reference, one pass of
// encoding/json over the same text, is what the number of passes is counted in.
func BenchmarkLargeValue(b *testing.B) {
	h := open(b, host.Options{})
	var steps []string
	for i := range 10 {
		steps = append(steps, fmt.Sprintf(`{"type":"set","values":{"v%d":"$v%d"}}`, i+1, i))
	}
	def, problems := h.Runtime().Decode([]byte(`{"name":"a","inputs":{"v0":{"type":"string"}},"steps":[`+strings.Join(steps, ",")+`]}`), "a.json")
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	text, err := json.Marshal(strings.Repeat("text with \"quotes\" and lines\n", 1<<20/29))
	if err != nil {
		b.Fatal(err)
	}
	for name, value := range map[string]json.RawMessage{"1MB": text, "small": json.RawMessage(`"x"`)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				id, err := h.Runtime().Start(b.Context(), def, runtime.StartOptions{Inputs: map[string]json.RawMessage{"v0": value}})
				if err != nil {
					b.Fatal(err)
				}
				if res, err := h.Runtime().Wait(b.Context(), id); err != nil || res.Status != sentinels.StatusCompleted {
					b.Fatalf("%v, %v", res.Error, err)
				}
			}
		})
	}
	b.Run("reference", func(b *testing.B) {
		for b.Loop() {
			var s string
			if err := json.Unmarshal(text, &s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
