package wasm

import "syscall"

// clearBytes is the size up to which clearing by hand is cheaper than handing
// pages back to the kernel and faulting them in again.
const clearBytes = 256 << 10

// mapRegion reserves address space; the kernel backs what is touched.
func mapRegion(size int) ([]byte, error) {
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
}

// clearRegion zeroes a region and reports whether it is fit for another use.
func clearRegion(region []byte, touched int) bool {
	if touched <= clearBytes {
		clear(region[:touched])
		return true
	}
	// On Linux a private anonymous page reads as zero after this; other
	// systems do not promise it, and so take the other file.
	return syscall.Madvise(region[:touched], syscall.MADV_DONTNEED) == nil
}

// unmapRegion cannot fail for a mapping of our own, and there is nobody to tell.
func unmapRegion(region []byte) { _ = syscall.Munmap(region) }
