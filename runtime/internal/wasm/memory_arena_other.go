//go:build !linux

package wasm

import "errors"

// mapRegion takes Go memory where pages cannot be reserved and cleared as on
// Linux. It costs what is reserved, but the limits and the gauge hold.
func mapRegion(size int) (region []byte, err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("out of memory")
		}
	}()
	return make([]byte, size), nil
}

// clearRegion zeroes a region and reports whether it is fit for another use.
func clearRegion(region []byte, touched int) bool {
	clear(region[:touched])
	return true
}

// unmapRegion leaves the region to the garbage collector.
func unmapRegion([]byte) {}
