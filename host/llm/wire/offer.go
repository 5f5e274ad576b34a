package wire

import "encoding/json"

// An Offer is a model that a server lists.
type Offer struct {
	Name    string
	Context int64 // size of its window in tokens; 0 if the server does not say
}

// Offers is a list of models as servers send it. Each server has a name of its own for the
// window, and many have none.
type Offers struct {
	Data []struct {
		ID            string `json:"id"`
		Loaded        Count  `json:"loaded_context_length"` // LM Studio: what it is loaded with
		MaxModelLen   Count  `json:"max_model_len"`         // vLLM, SGLang
		ContextLength Count  `json:"context_length"`        // OpenRouter, Together, Fireworks
		ContextWindow Count  `json:"context_window"`        // Groq
		MaxContext    Count  `json:"max_context_length"`    // Mistral, LM Studio
		MaxInput      Count  `json:"max_input_tokens"`      // Anthropic
		Meta          meta   `json:"meta"`
	} `json:"data"`
}

// meta is what llama.cpp says of a model. Other servers have something else there.
type meta struct{ context Count }

// UnmarshalJSON implements [json.Unmarshaler].
func (m *meta) UnmarshalJSON(raw []byte) error {
	var fields struct {
		Context Count `json:"n_ctx"`
		Trained Count `json:"n_ctx_train"` // of versions that do not say with what they run
	}
	if json.Unmarshal(raw, &fields) == nil {
		m.context = max(fields.Context, 0)
		if m.context == 0 {
			m.context = fields.Trained
		}
	}
	return nil
}

// List returns the models in their order.
func (o Offers) List() []Offer {
	var list []Offer
	for _, m := range o.Data {
		offer := Offer{Name: m.ID}
		for _, n := range []Count{m.Loaded, m.MaxModelLen, m.ContextLength, m.ContextWindow, m.MaxContext, m.MaxInput, m.Meta.context} {
			if n > 0 {
				offer.Context = int64(n)
				break
			}
		}
		list = append(list, offer)
	}
	return list
}
