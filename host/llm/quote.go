package llm

import (
	"context"
	"math"

	"github.com/sentinel-runtime/sentinel/host/llm/wire"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// A Quote is the worst case of one turn. Priced is false for a model whose
// price is not known; its cost is then 0 and means nothing.
type Quote struct {
	Provider string
	Model    string
	Worst    sentinels.Usage
	// OutputUSD is the price of one output token, part of Worst.CostUSD.
	OutputUSD float64
	Priced    bool
	// Excess is by how many tokens the input is estimated to exceed the window, 0 if it does
	// not or the window is not known.
	Excess int64
}

// safety is what an estimate of input may be short by.
const safety = 1.2

// Quote says what a turn may cost at worst: the input as estimated and a fifth
// more, and all the output it may have. The limit on output is sent with the
// turn. Quote asks a local server for its models once, if the choice needs it,
// and makes no other request.
func (m *Models) Quote(ctx context.Context, turn sentinels.Turn) (Quote, error) {
	c, err := m.choose(ctx, turn)
	if err != nil {
		return Quote{}, m.clean(m.explain(c, turn, err))
	}
	row, priced := m.priced(c.provider, c.Model)
	sized, tokens := m.sized(c), estimateTurn(turn, row.CharsPerToken)
	worst := wire.Usage{Input: int64(math.Ceil(float64(tokens) * safety)), Output: sized.maxTokens(turn)}
	if row.CacheWrite > row.Input { // a provider may cache unasked, and writing costs more
		worst.CacheWrite = worst.Input
	}
	q := Quote{Provider: c.Provider, Model: c.Model, Priced: priced, Worst: sentinels.Usage{
		InputTokens: worst.Input, OutputTokens: worst.Output, Calls: 1,
	}}
	if sized.Context > 0 {
		q.Excess = max(tokens+worst.Output-sized.Context, 0)
	}
	if priced {
		q.Worst.CostUSD = row.cost(worst)
		input := worst
		input.Output = 0
		q.OutputUSD = (q.Worst.CostUSD - row.cost(input)) / float64(worst.Output)
	}
	return q, nil
}
