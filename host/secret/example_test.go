package secret_test

import (
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/secret"
)

func Example() {
	env := map[string]string{"SENTINEL_SECRET_SLACK_TOKEN": "xoxb-0123456789"}
	s := secret.New(secret.Options{Getenv: func(name string) string { return env[name] }, Redactor: new(redact.Redactor)})
	value, err := s.Value("SLACK_TOKEN")
	fmt.Println(len(value), err)
	fmt.Println(string(s.Hide([]byte("Bearer xoxb-0123456789"), false)))
	_, err = s.Value("OTHER")
	fmt.Println(err)
	// Output:
	// 15 <nil>
	// Bearer ***
	// secret "OTHER": has no value on this host
}
