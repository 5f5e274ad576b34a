package llm_test

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func ExampleModels_Quote() {
	models, err := llm.Open(llm.Config{
		Default: "hosted/big",
		Providers: []llm.Provider{{
			Name: "hosted", BaseURL: "https://llm.example/v1", KeyEnv: "HOSTED_KEY",
		}},
		Models: []llm.Model{{Provider: "hosted", Name: "big", Input: 3, Output: 15}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	quote, err := models.Quote(context.Background(), sentinels.Turn{
		Messages:  []sentinels.Message{{Role: "user", Content: "Summarise the failing tests."}},
		MaxTokens: 1000,
	})
	fmt.Printf("%s/%s: at most %d tokens out, $%.4f, %v\n",
		quote.Provider, quote.Model, quote.Worst.OutputTokens, quote.Worst.CostUSD, err)
	// Output: hosted/big: at most 1000 tokens out, $0.0150, <nil>
}
