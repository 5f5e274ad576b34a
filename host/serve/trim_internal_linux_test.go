package serve

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smaps = `00400000-01d10000 r-xp 00000000 fe:00 9986963                            /bin/sentinel
Size:              25664 kB
Rss:                1536 kB
Private_Dirty:         0 kB
Anonymous:             0 kB
Locked:                0 kB
01d10000-03d2c000 r--p 01910000 fe:00 9986963                            /bin/sentinel
Private_Dirty:        12 kB
Anonymous:             0 kB
03d2c000-03e7e000 rw-p 0392c000 fe:00 9986963                            /bin/sentinel
Private_Dirty:         0 kB
Anonymous:             0 kB
7f0000000000-7f0000100000 r--p 00000000 fe:00 7                          /lib/libc.so.6
Private_Dirty:         0 kB
Anonymous:             0 kB
7f0000200000-7f0000300000 r-xp 00000000 fe:00 7                          /bin/sentinel (deleted)
Private_Dirty:         0 kB
7f0000400000-7f0000500000 r--p 00000000 fe:00 7                          /bin/sentinel
Private_Dirty:         0 kB
Anonymous:             0 kB
VmFlags: rd mr mw me
`

// TestOnlyCleanMappingsGo: a page that differs from the file would be lost.
func TestOnlyCleanMappingsGo(t *testing.T) {
	want := []mapping{{0x400000, 0x1d10000}, {0x7f0000400000, 0x7f0000500000}}
	got := cleanMappings([]byte(smaps), "/bin/sentinel")
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" {
		t.Error(diff)
	}
}

// TestTrim: the program works on with its pages gone.
func TestTrim(t *testing.T) {
	for range 3 {
		if err := trim(); err != nil {
			t.Fatal(err)
		}
	}
}
