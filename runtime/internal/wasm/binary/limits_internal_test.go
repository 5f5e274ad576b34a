package binary

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/sdk/abitest/abidoc"
)

// TestLimitTable compares the limits of a scan with clause A8.2.
func TestLimitTable(t *testing.T) {
	want := map[string]string{
		"file":                           abidoc.Bytes(MaxModule),
		"sections, custom ones included": abidoc.Count(maxSections),
		"functions":                      abidoc.Count(maxFuncs),
		"one function":                   fmt.Sprintf("%s of code, %s locals, %s parameters, %s results", abidoc.Bytes(maxBody), abidoc.Count(maxLocals), abidoc.Count(maxArity), abidoc.Count(maxArity)),
		"locals of all functions":        abidoc.Count(maxAllLocal),
		"types":                          abidoc.Count(maxTypes),
		"imports":                        abidoc.Count(maxImports),
		"exports":                        abidoc.Count(maxExports),
		"globals, data segments, element segments, elements of one segment, targets of one branch table": abidoc.Count(maxEntries) + " each",
		"tables":                       fmt.Sprintf("%d, of %s entries each; table.grow beyond that returns -1", maxTables, abidoc.Count(MaxTable)),
		"names of imports and exports": abidoc.Bytes(maxName) + " each",
		"estimated time to compile":    fmt.Sprintf("%d minute a function, %d minutes in all; the estimate counts branches, loops and locals in use and is high", maxCost/time.Minute, maxAllCost/time.Minute),
	}
	table := abidoc.Map(t, "A8.2")
	delete(table, "memories") // limits of a host
	delete(table, "compiling")
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("sdk/ABI.md A8.2 (-code +table):\n%s", diff)
	}
}
