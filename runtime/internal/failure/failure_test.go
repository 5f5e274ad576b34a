package failure

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestFrom(t *testing.T) {
	own := New(abi.Conflict, "revision %d", 3)
	if own.Message != "revision 3" || own.Code != abi.Conflict {
		t.Errorf("New: %+v", own)
	}
	if got := From(fmt.Errorf("save: %w", own), abi.Internal); got != own {
		t.Errorf("From lost the code: %+v", got)
	}
	if got := From(errors.New("disk"), abi.Unavailable); got.Code != abi.Unavailable || got.Message != "disk" {
		t.Errorf("From: %+v", got)
	}
}
