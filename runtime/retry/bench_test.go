package retry_test

import (
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/retry"
)

func BenchmarkClassifyMessage(b *testing.B) {
	for name, msg := range map[string]string{
		"short": "something odd happened in step 3 of the build",
		"64KB":  strings.Repeat("odd text ", 8<<10),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				retry.ClassifyMessage(msg)
			}
		})
	}
}
