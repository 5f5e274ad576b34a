//go:build !linux

package memory

import "errors"

// mapRegion allocates Go memory on systems that cannot reserve and clear pages like
// Linux. A region takes memory for its whole size; limits and counts are the same.
func mapRegion(size int) (region []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("out of memory")
		}
	}()
	return make([]byte, size), nil
}

// clearRegion zeroes a region and reports whether it can be used again.
func clearRegion(region []byte, touched int) bool {
	clear(region[:touched])
	return true
}

// unmapRegion does nothing; the garbage collector frees the region.
func unmapRegion([]byte) {}
