package httpproblem_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/sentinel-runtime/sentinel/host/internal/httpproblem"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// An error crosses to another program and is the same there.
func Example() {
	w := httptest.NewRecorder()
	httpproblem.Write(w, &abi.Error{Code: abi.NotFound, Message: `no run "r1"`, Hint: "list them with sentinel list"})
	fmt.Println(w.Code, w.Header().Get("Content-Type"))

	err := httpproblem.Read("the server", w.Code, w.Header().Get("Content-Type"), w.Body.Bytes())
	fmt.Println(err.Code, err, "-", err.Hint)
	// Output:
	// 404 application/problem+json
	// not_found no run "r1" - list them with sentinel list
}
