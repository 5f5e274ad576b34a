package notify_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	netmail "net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/notify"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A mailServer is a server of SMTP that keeps the mails and commands that it gets.
type mailServer struct {
	addr    string
	roots   *x509.CertPool
	config  *tls.Config
	first   bool              // TLS from the first byte
	bare    bool              // without STARTTLS
	replies map[string]string // to commands, by their first word; of a mail by "."

	mu       sync.Mutex
	commands []string
	mails    []string
	secure   bool // the last mail came by TLS
}

func newMailServer(t *testing.T, s *mailServer) *mailServer {
	t.Helper()
	https := httptest.NewTLSServer(nil) // has a certificate of 127.0.0.1
	t.Cleanup(https.Close)
	s.roots = x509.NewCertPool()
	s.roots.AddCert(https.Certificate())
	s.config = &tls.Config{Certificates: https.TLS.Certificates}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	var connections sync.WaitGroup
	connections.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connections.Go(func() {
				defer conn.Close()
				s.serve(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		connections.Wait()
	})
	return s
}

// serve speaks with one client until it leaves.
func (s *mailServer) serve(conn net.Conn) {
	secure := s.first
	if s.first {
		conn = tls.Server(conn, s.config)
	}
	r := bufio.NewReader(conn)
	fmt.Fprint(conn, "220 ready\r\n")
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		word := strings.ToUpper(strings.Fields(line + " -")[0])
		s.mu.Lock()
		s.commands = append(s.commands, line)
		reply, set := s.replies[word]
		s.mu.Unlock()
		switch {
		case reply == "hang":
			_, _ = io.Copy(io.Discard, r) // until the client leaves
			return
		case set:
		case word == "EHLO":
			reply = "250-localhost\r\n250-AUTH PLAIN\r\n250-STARTTLS\r\n250 8BITMIME"
			if secure || s.bare {
				reply = "250-localhost\r\n250-AUTH PLAIN\r\n250 8BITMIME"
			}
		case word == "STARTTLS":
			fmt.Fprint(conn, "220 go\r\n")
			conn, secure = tls.Server(conn, s.config), true
			r = bufio.NewReader(conn)
			continue
		case word == "AUTH":
			reply = "235 welcome"
		case word == "DATA":
			fmt.Fprint(conn, "354 go\r\n")
			var mail strings.Builder
			for line := ""; line != ".\r\n"; {
				if line, err = r.ReadString('\n'); err != nil {
					return
				}
				mail.WriteString(line)
			}
			s.mu.Lock()
			s.mails, s.secure = append(s.mails, mail.String()), secure
			reply, set = s.replies["."]
			s.mu.Unlock()
			if !set {
				reply = "250 queued"
			}
			if reply == "hang" {
				_, _ = io.Copy(io.Discard, r)
				return
			}
		case word == "QUIT":
			fmt.Fprint(conn, "221 bye\r\n")
			return
		default:
			reply = "250 ok"
		}
		fmt.Fprint(conn, reply+"\r\n")
	}
}

const password = "hunter2hunter2"

func (s *mailServer) options(mode string) notify.Options {
	return notify.Options{
		Email: notify.Email{Server: s.addr, From: "Sentinel <sentinel@example.org>", To: []string{"ada@example.org", "ben@example.org"}, User: "sentinel",
			Password: func() (string, error) { return password, nil }, TLS: mode, RootCAs: s.roots},
		Hide: func(text string) string { return strings.ReplaceAll(text, password, "***") },
	}
}

// A mail has all of a message, comes by TLS, and a repetition has the same Message-ID.
func TestMail(t *testing.T) {
	for _, mode := range []string{notify.StartTLS, notify.TLS, notify.NoTLS} {
		s := newMailServer(t, &mailServer{first: mode == notify.TLS, bare: mode == notify.NoTLS})
		m := notify.Message{Title: "Ticket T-1 wartet: Größe", Text: "It is blocked\n\nsentinel decide T-1 accept", URL: "https://example.org/t"}
		for range 2 { // of two processes
			sent, err := service(t, s.options(mode)).Send(t.Context(), m, "k")
			if err != nil || len(sent) != 1 || !sent[0].OK || sent[0].To != "email" {
				t.Fatalf("%s: %+v, %v", mode, sent, err)
			}
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.mails) != 2 || s.secure != (mode != notify.NoTLS) {
			t.Fatalf("%s: %d mails, by TLS: %v", mode, len(s.mails), s.secure)
		}
		got, err := netmail.ReadMessage(strings.NewReader(s.mails[0]))
		if err != nil {
			t.Fatal(err)
		}
		subject, err := new(mime.WordDecoder).DecodeHeader(got.Header.Get("Subject"))
		if err != nil || subject != m.Title {
			t.Errorf("subject %q, %v", subject, err)
		}
		body, err := io.ReadAll(quotedprintable.NewReader(got.Body))
		if want := "It is blocked\n\nsentinel decide T-1 accept\n\nhttps://example.org/t\n"; err != nil || !strings.HasPrefix(strings.ReplaceAll(string(body), "\r\n", "\n"), want) {
			t.Errorf("%q, %v", body, err)
		}
		again, _ := netmail.ReadMessage(strings.NewReader(s.mails[1]))
		if id := got.Header.Get("Message-ID"); !strings.HasPrefix(id, "<msg_") || !strings.HasSuffix(id, "@example.org>") || again.Header.Get("Message-ID") != id || got.Header.Get("Auto-Submitted") != "auto-generated" {
			t.Errorf("ids %q and %q", id, again.Header.Get("Message-ID"))
		}
		all := strings.Join(s.commands, "\n")
		for _, want := range []string{"AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00sentinel\x00"+password)), "MAIL FROM:<sentinel@example.org>", "RCPT TO:<ada@example.org>", "RCPT TO:<ben@example.org>"} {
			if !strings.Contains(all, want) {
				t.Errorf("%s: no %q in\n%s", mode, want, all)
			}
		}
	}
}

// Newlines in a message add no header, and lines of the text end no mail.
func TestMailHasNoInjectedHeaders(t *testing.T) {
	s := newMailServer(t, &mailServer{})
	for _, title := range []string{"a\r\nBcc: eve@example.org", "a\nBcc: eve@example.org\n\nbody", "a\rBcc: eve@example.org", "é\r\nBcc: eve@example.org", "=?utf-8?q?a=0D=0ABcc:_eve@example.org?=", "a\u2028Bcc: eve@example.org"} {
		m := notify.Message{Title: title, Text: "one\r\n.\r\nMAIL FROM:<eve@example.org>\r\n\r\nBcc: eve@example.org", Event: "a\r\nBcc: eve@example.org"}
		if _, err := service(t, s.options(notify.StartTLS)).Send(t.Context(), m, ""); err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		got, err := netmail.ReadMessage(strings.NewReader(s.mails[len(s.mails)-1]))
		if err != nil {
			t.Fatal(err)
		}
		for name := range got.Header {
			if strings.EqualFold(name, "bcc") {
				t.Errorf("%q added the header %s", title, name)
			}
		}
		if all := strings.Join(s.commands, "\n"); strings.Contains(all, "eve@") {
			t.Errorf("commands of the text:\n%s", all)
		}
		s.mu.Unlock()
	}
}

// The reply of the server decides about a repetition, and no error has the password.
func TestMailErrors(t *testing.T) {
	for _, c := range []struct {
		word, reply string
		code        abi.Code
		permanent   bool
		has         string
	}{
		{"MAIL", "451 try later", abi.Unavailable, false, "try later"},
		{"MAIL", "550 not you", abi.BadFields, true, "not you"},
		{"RCPT", "450 busy", abi.Unavailable, false, "busy"},
		{"RCPT", "550 unknown", abi.BadFields, true, "ada@example.org"},
		{".", "452 full", abi.Unavailable, false, "full"},
		{".", "554 spam", abi.BadFields, true, "spam"},
		{"AUTH", "535 bad password " + password, abi.Denied, true, "bad password"},
		{"AUTH", "454 later", abi.Unavailable, false, "later"},
		{"EHLO", "250 localhost", abi.Denied, true, "STARTTLS"},
		{"EHLO", "421 closing", abi.Unavailable, false, "closing"},
	} {
		s := newMailServer(t, &mailServer{replies: map[string]string{c.word: c.reply, "HELO": c.reply}})
		_, err := service(t, s.options(notify.StartTLS)).Send(t.Context(), notify.Message{Title: "t"}, "k")
		if e := abi.As(err); e == nil || e.Code != c.code || e.Permanent != c.permanent || !strings.Contains(e.Message, c.has) || strings.Contains(e.Message+e.Hint, password) {
			t.Errorf("%s %s: %+v", c.word, c.reply, err)
		}
	}
	// An error after the mail was taken does not have it sent again.
	s := newMailServer(t, &mailServer{replies: map[string]string{"RSET": "451 later", "QUIT": "451 later"}})
	if _, err := service(t, s.options(notify.StartTLS)).Send(t.Context(), notify.Message{Title: "t"}, "k"); err != nil {
		t.Errorf("after the mail: %v", err)
	}
	opt := s.options(notify.StartTLS)
	opt.Email.RootCAs = x509.NewCertPool()
	if _, err := service(t, opt).Send(t.Context(), notify.Message{Title: "t"}, "k"); abi.CodeOf(err) != abi.Denied || !abi.As(err).Permanent {
		t.Errorf("an unknown certificate: %v", err)
	}
	opt.Email.Server = "127.0.0.1:1"
	if _, err := service(t, opt).Send(t.Context(), notify.Message{Title: "t"}, "k"); abi.CodeOf(err) != abi.Unavailable || abi.As(err).Permanent {
		t.Errorf("no server: %v", err)
	}
}

// A server that hangs, wherever it does, ends at the timeout of the delivery.
func TestMailServerThatHangs(t *testing.T) {
	for _, word := range []string{"EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "."} {
		s := newMailServer(t, &mailServer{replies: map[string]string{word: "hang"}})
		opt := s.options(notify.StartTLS)
		opt.Timeout = 100 * time.Millisecond
		_, err := service(t, opt).Send(t.Context(), notify.Message{Title: "t"}, "k")
		if e := abi.As(err); e == nil || e.Permanent || e.Code != abi.Timeout {
			t.Errorf("hangs at %s: %v", word, err)
		}
	}
}

// Settings that no mail can be sent with are refused.
func TestMailSettings(t *testing.T) {
	good := notify.Email{Server: "mail.example.org:587", From: "a@example.org", To: []string{"b@example.org"}, TLS: notify.StartTLS}
	if key, problem := good.Check(); problem != "" {
		t.Errorf("%s: %s", key, problem)
	}
	for want, change := range map[string]func(*notify.Email){
		"notify.email.server":   func(e *notify.Email) { e.Server = "mail.example.org" },
		"notify.email.from":     func(e *notify.Email) { e.From = "a@example.org\r\nBcc: c@example.org" },
		"notify.email.to":       func(e *notify.Email) { e.To = []string{"b@example.org>\r\nRCPT TO:<c@example.org"} },
		"notify.email.password": func(e *notify.Email) { e.User = "ada" },
		"notify.email.tls":      func(e *notify.Email) { e.TLS = notify.NoTLS },
	} {
		e := good
		change(&e)
		if key, _ := e.Check(); key != want {
			t.Errorf("%+v: %q, want %s", e, key, want)
		}
		if _, err := notify.New(notify.Options{Email: e}); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%+v: %v", e, err)
		}
	}
}
