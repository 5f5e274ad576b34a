package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// parcels is the collection in which the shop notes what it has sent.
const parcels = "parcels"

// ship is what the command takes. Its JSON Schema is made of the type: the API,
// `sentinel exec --help` and models see these words.
type ship struct {
	Order int `json:"order" minimum:"1" jsonschema:"number of the order"`
}

// A parcel is what it gives.
type parcel struct {
	Order int    `json:"order"`
	What  string `json:"what"`
	By    string `json:"by" jsonschema:"the sentinel that sent it"`
}

// shipping returns the command shop/ship.
//
// InStore says that all it does is written to the store that it is handed. That
// commits together with the note that the call has ended, so whenever the
// process dies the parcel was sent once, and no decision is needed. A command
// that does something outside says Idempotent, if it makes use of [command.Call]'s
// Key, or neither; after a crash a person is asked about it then.
func (s *shop) shipping() command.Command {
	return command.New("shop/ship", "Send the parcel of an order.", command.Options{Effect: command.Changes, InStore: true, Idempotent: true},
		func(ctx context.Context, call *command.Call, in ship) (parcel, error) {
			o, ok := s.order(in.Order)
			if !ok {
				return parcel{}, &abi.Error{Code: abi.NotFound, Permanent: true, Field: "order", Message: fmt.Sprintf("shop/ship: no order %d", in.Order)}
			}
			p := parcel{Order: o.Number, What: o.What, By: string(call.Sentinel)}
			data, err := json.Marshal(p)
			if err != nil {
				return parcel{}, err
			}
			// The document must be new: a second parcel for an order is the error
			// conflict, also for another caller.
			_, err = call.Records.Put(ctx, parcels, fmt.Sprintf("%08d", o.Number), data, 0)
			return p, err
		})
}

// order returns the order with a number.
func (s *shop) order(number int) (order, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if number < 1 || number > len(s.orders) {
		return order{}, false
	}
	return s.orders[number-1], true
}
