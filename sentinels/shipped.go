package sentinels

import (
	"embed"
	"slices"
	"strings"
)

// Sentinels that are part of the program are JSON files in the folder of this package:
// each is read, copied, changed and replaced like any other.
//
//go:embed do.json forge-worker.json notify.json operator.json reviewer.json
var shipped embed.FS

// Shipped returns the ids of the sentinels that are part of the program, sorted.
func Shipped() []ID {
	entries, err := shipped.ReadDir(".")
	if err != nil {
		panic(err) // the files are embedded
	}
	ids := make([]ID, len(entries))
	for i, e := range entries {
		ids[i] = ID(strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(ids)
	return ids
}

// ShippedText returns the text of the definition of one of them; ok is false for another id.
func ShippedText(id ID) (text []byte, ok bool) {
	text, err := shipped.ReadFile(string(id) + ".json")
	return text, err == nil
}
