package redact_test

import (
	"encoding/base64"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/redact"
)

func ExampleRedactor() {
	var r redact.Redactor
	if err := r.Register("s3cret-t0ken"); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.String("Authorization: Bearer s3cret-t0ken"))
	fmt.Println(r.String("Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("me!s3cret-t0ken"))))
	// Output:
	// Authorization: Bearer [redacted]
	// Authorization: Basic bWUh[redacted]
}
