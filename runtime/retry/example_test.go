package retry_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/retry"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func ExampleDecide() {
	c := retry.ClassifyError(errors.New("upstream returned 503 for /v1/items"))
	d := retry.Decide(c, 2, sentinels.RetryPolicy{}, 10*time.Second)
	fmt.Println(c.Category, c.Subcategory, d.Retry, d.Delay, d.AttemptsRemaining)
	// Output: api server_error true 10s 4
}
