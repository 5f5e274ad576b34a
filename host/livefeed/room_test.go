package livefeed_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sentinel-runtime/sentinel/host/livefeed"
)

// hijacked is a response whose connection the handler takes.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return h.conn, bufio.NewReadWriter(bufio.NewReader(h.conn), bufio.NewWriter(h.conn)), nil
}

// TestRefuseWaitsForNoClient: a refused client gets the code, and cannot keep its connection by not answering it.
func TestRefuseWaitsForNoClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		read := make(chan string)
		go func() {
			text, _ := io.ReadAll(there) // to the end of the connection
			read <- string(text)
		}()
		r := httptest.NewRequest(http.MethodGet, "/ws", nil)
		for k, v := range map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA=="} {
			r.Header.Set(k, v)
		}
		begun := time.Now() // of the bubble, which goes on only while all wait
		livefeed.Refuse(hijacked{httptest.NewRecorder(), here}, r, false)
		if text := <-read; !strings.HasSuffix(text, "\x0f\xa1no token") {
			t.Errorf("the client has read %q", text)
		}
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("it waited %s", waited)
		}
	})
}
