package memory

import "syscall"

// clearBytes is the size up to which zeroing takes less time than returning pages to
// the operating system and faulting them in again.
const clearBytes = 256 << 10

// mapRegion reserves address space. Pages take memory once they are written.
func mapRegion(size int) ([]byte, error) {
	return syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANON|syscall.MAP_NORESERVE)
}

// clearRegion zeroes a region and reports whether it can be used again.
func clearRegion(region []byte, touched int) bool {
	if touched <= clearBytes {
		clear(region[:touched])
		return true
	}
	// On Linux a private anonymous page reads as zero after MADV_DONTNEED. Other
	// systems do not guarantee that, and use region_other.go.
	return syscall.Madvise(region[:touched], syscall.MADV_DONTNEED) == nil
}

// unmapRegion releases a region. It cannot fail for a mapping of mapRegion.
func unmapRegion(region []byte) { _ = syscall.Munmap(region) }
