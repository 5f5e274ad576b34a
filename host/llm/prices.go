package llm

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

//go:embed prices.json
var pricesJSON []byte

// prices is the built-in table: data, not code. Rows without a source and a date have those of their
// provider.
type prices struct {
	Sources map[string]struct {
		Source string `json:"source"`
		Date   string `json:"date"`
	} `json:"sources"`
	Auto   map[string]string `json:"auto"` // the model for "auto" by hosted provider
	Models []Model           `json:"models"`
}

func builtinPrices() (prices, error) {
	var p prices
	if err := json.Unmarshal(pricesJSON, &p); err != nil {
		return p, fmt.Errorf("read the built-in prices: %w", err)
	}
	for i := range p.Models {
		if row := &p.Models[i]; row.Source == "" {
			row.Source, row.Date = p.Sources[row.Provider].Source, p.Sources[row.Provider].Date
		}
	}
	return p, nil
}

// dated matches what a provider appends to a model's name for one release.
var dated = lazyregexp.New(`-(?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$`)

// row returns the table's row for a model at a provider: configured rows
// first, and the exact name before the one without its date.
func (m *Models) row(p *provider, name string) (Model, bool) {
	for _, table := range [][]Model{m.config.Models, m.builtin.Models} {
		for _, want := range []string{name, dated.ReplaceAllString(name, "")} {
			for _, row := range table {
				// Gateways serve the hosted models under their own names, so a
				// built-in row fits any provider of that kind.
				if row.Name == want && (row.Provider == "" || row.Provider == p.Name || row.Provider == p.Kind) {
					return row, true
				}
			}
		}
	}
	return Model{}, false
}

// priced returns the row to charge a model by. A local server is free, unless
// it is one only by its address and serves a model known to cost: a gateway.
func (m *Models) priced(p *provider, name string) (row Model, priced bool) {
	row, known := m.row(p, name)
	switch {
	case p.Local:
		row.Input, row.Output, row.CacheRead, row.CacheWrite, row.Long = 0, 0, 0, 0, nil
		return row, true
	case known:
		return row, true
	}
	return row, p.near
}

// cost is the price of usage in US dollars.
func (row Model) cost(u wire.Usage) float64 {
	input, output, read, write := row.Input, row.Output, row.CacheRead, row.CacheWrite
	if row.Long != nil && u.Input > row.Long.Above {
		if row.Input > 0 {
			write *= row.Long.Input / row.Input
		}
		input, output, read = row.Long.Input, row.Long.Output, row.Long.CacheRead
	}
	if read == 0 {
		read = input
	}
	if write == 0 {
		write = input
	}
	plain := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	return (float64(plain)*input + float64(u.CacheRead)*read +
		float64(u.CacheWrite)*write + float64(u.Output)*output) / 1e6
}

// valid reports whether a row has a name, and no negative number.
func (row Model) valid() bool {
	numbers := []float64{row.Input, row.Output, row.CacheRead, row.CacheWrite, float64(row.Context), float64(row.MaxOutput), row.CharsPerToken}
	if long := row.Long; long != nil {
		numbers = append(numbers, float64(long.Above), long.Input, long.Output, long.CacheRead)
	}
	return row.Name != "" && !slices.ContainsFunc(numbers, func(n float64) bool { return n < 0 })
}

// Token limits of a request that names none.
const (
	defaultMaxTokens = 8192  // of a model the table does not have
	knownMaxTokens   = 16384 // thinking counts, so a model that thinks needs more
)

// replyShare is the part of a window that is left for a reply of which the turn names no
// limit: one of so many.
const replyShare = 4

// maxTokens is the bound sent with every turn, so that a quote holds. It is at most a part of
// the window, half of it if the turn names more, because servers refuse a request whose
// input and reply together may be larger than the window.
func (row Model) maxTokens(turn sentinels.Turn) int64 {
	most, share := turn.MaxTokens, int64(2)
	if most <= 0 {
		most, share = defaultMaxTokens, replyShare
		if row.MaxOutput > 0 {
			most = knownMaxTokens
		}
	}
	if row.Context > 0 {
		most = min(most, max(row.Context/share, 1))
	}
	if row.MaxOutput > 0 {
		most = min(most, row.MaxOutput)
	}
	return most
}
