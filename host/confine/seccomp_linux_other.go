//go:build linux && !amd64 && !arm64

package confine

const hasFilter = false

var (
	fileCallsHere []int
	pollsHere     map[int]int
)

func restrictCalls(bool) error { return nil }
