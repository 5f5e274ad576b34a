package maintenance_test

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/maintenance"
)

// The JSON form of the health is that of the API.
func ExampleHealth() {
	h := maintenance.Health{
		ReadOnly: true, Reason: "the store cannot be written: disk full", Hint: "free space on the disk",
		Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), FreeBytes: 4096, LowBytes: 64 << 20, Held: 2,
	}
	text, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(text))
	// Output:
	// {
	//   "ok": false,
	//   "readOnly": true,
	//   "reason": "the store cannot be written: disk full",
	//   "hint": "free space on the disk",
	//   "since": "2026-01-02T03:04:05Z",
	//   "freeBytes": 4096,
	//   "lowBytes": 67108864,
	//   "storeBytes": 0,
	//   "storeFree": 0,
	//   "held": 2,
	//   "commits": 0
	// }
}
