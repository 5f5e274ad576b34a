package notify

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	netmail "net/mail"
	"net/textproto"
	"strconv"
	"strings"
	"time"

	"github.com/wneessen/go-mail"

	"github.com/sentinel-runtime/sentinel/host/internal/endpoint"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Ways to protect the connection to a mail server.
const (
	StartTLS = "starttls"
	TLS      = "tls"
	NoTLS    = "none" // only for a server on this machine
)

// TLSModes returns the ways to protect the connection to a mail server.
func TLSModes() []string { return []string{StartTLS, TLS, NoTLS} }

// Email says how messages are sent by a mail server. The zero value sends none.
type Email struct {
	Server   string // host:port
	From     string
	To       []string
	User     string                 // default: without authentication
	Password func() (string, error) // of the user
	TLS      string                 // default [StartTLS]
	RootCAs  *x509.CertPool         // default those of the system
}

// Check returns the setting of an error and what is wrong with it, "" for none.
func (e Email) Check() (key, problem string) {
	if e.Server == "" {
		if e.From != "" || len(e.To) > 0 || e.User != "" {
			return "notify.email.server", "is empty: want HOST:PORT of the mail server"
		}
		return "", ""
	}
	host, port, err := net.SplitHostPort(e.Server)
	number, bad := strconv.ParseUint(port, 10, 16)
	if err != nil || bad != nil || host == "" || number == 0 {
		return "notify.email.server", fmt.Sprintf("invalid address %q: want HOST:PORT, such as mail.example.org:587", e.Server)
	}
	if _, err := netmail.ParseAddress(e.From); err != nil {
		return "notify.email.from", fmt.Sprintf("invalid address %q: want NAME@HOST", e.From)
	}
	if len(e.To) == 0 {
		return "notify.email.to", "is empty: want addresses of the recipients"
	}
	for _, to := range e.To {
		if _, err := netmail.ParseAddress(to); err != nil {
			return "notify.email.to", fmt.Sprintf("invalid address %q: want NAME@HOST", to)
		}
	}
	if (e.User == "") != (e.Password == nil) {
		return "notify.email.password", "notify.email.user and notify.email.password need each other"
	}
	if e.TLS == NoTLS && !endpoint.Loopback(host) {
		return "notify.email.tls", "none is only for a mail server on this machine: want starttls or tls"
	}
	return "", ""
}

// mail sends a message by the mail server. All errors that it returns are without the password,
// as long as the server does not repeat it.
func (s *Service) mail(ctx context.Context, m Message, id string) error {
	e := s.opt.Email
	msg, err := e.message(m, id)
	if err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(e.Server) // checked by New
	number, _ := strconv.Atoi(port)
	config := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, RootCAs: e.RootCAs}
	opts := []mail.Option{
		mail.WithPort(number), mail.WithTLSConfig(config), mail.WithTimeout(s.opt.Timeout + time.Minute), // ctx ends first, also on a busy machine
		mail.WithTLSPolicy(map[string]mail.TLSPolicy{StartTLS: mail.TLSMandatory, TLS: mail.TLSOpportunistic, NoTLS: mail.NoTLS}[e.TLS]),
		mail.WithDialContextFunc(func(dial context.Context, network, address string) (net.Conn, error) {
			conn, err := (&net.Dialer{}).DialContext(dial, network, address)
			if err != nil {
				return nil, err
			}
			// Each command extends the deadline of the connection, so ctx bounds all of them.
			context.AfterFunc(ctx, func() { _ = conn.Close() })
			if e.TLS == TLS {
				return tls.Client(conn, config), nil
			}
			return conn, nil
		}),
	}
	if e.User != "" {
		password, err := e.Password()
		if err != nil {
			return err
		}
		auth := mail.SMTPAuthAutoDiscover
		if e.TLS == NoTLS {
			auth = mail.SMTPAuthPlain // discovery leaves it out without TLS, also on this machine
		}
		opts = append(opts, mail.WithSMTPAuth(auth), mail.WithUsername(e.User), mail.WithPassword(password))
	}
	client, err := mail.NewClient(host, opts...)
	if err != nil {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Message: err.Error(), Hint: "check notify.email"}
	}
	ctx, cancel := context.WithCancel(ctx) // the connection is closed at the latest at the end
	defer cancel()
	err = client.DialAndSendWithContext(ctx, msg)
	if err == nil || msg.IsDelivered() { // an error after that is one of the farewell
		return nil
	}
	return mailError(e.Server, err)
}

// message returns the mail of a message.
func (e Email) message(m Message, id string) (*mail.Msg, error) {
	msg := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := errors.Join(msg.From(e.From), msg.To(e.To...)); err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: err.Error(), Hint: "check notify.email.from and notify.email.to"}
	}
	from, _ := netmail.ParseAddress(e.From) // msg.From has parsed it
	_, domain, _ := strings.Cut(from.Address, "@")
	msg.Subject(m.Title) // has one line
	msg.SetMessageIDWithValue(id + "@" + domain)
	msg.SetDate()
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // no answer of a machine
	msg.SetBodyString(mail.TypeTextPlain, strings.TrimPrefix(m.Text+suffix(m.URL), "\n\n"))
	return msg, nil
}

// suffix is the last paragraph of a mail.
func suffix(url string) string {
	if url == "" {
		return "\n"
	}
	return "\n\n" + url + "\n"
}

// mailError gives an error of a mail server a code: a repetition helps with 4xx and with a
// connection that fails, and not with others.
func mailError(server string, err error) error {
	e := &abi.Error{Code: abi.Unavailable, Message: server + ": " + strings.ReplaceAll(err.Error(), "\n", " ")}
	var (
		send  *mail.SendError
		reply *textproto.Error
		cert  *tls.CertificateVerificationError
		dial  net.Error
	)
	code := 0
	if errors.As(err, &send) {
		code = send.ErrorCode()
	}
	if errors.As(err, &reply) {
		code = cmp.Or(code, reply.Code)
	}
	switch {
	case code/100 == 4:
	case code == 530, code == 534, code == 535:
		e.Code, e.Permanent, e.Hint = abi.Denied, true, "check notify.email.user and the secret of notify.email.password"
	case code != 0:
		e.Code, e.Permanent, e.Hint = abi.BadFields, true, "check notify.email.from and notify.email.to"
	case errors.As(err, &cert):
		e.Code, e.Permanent, e.Hint = abi.Denied, true, "the certificate of the mail server has to be one of its name, of an authority that this machine knows"
	case errors.As(err, &dial), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed), send != nil:
	default:
		e.Code, e.Permanent, e.Hint = abi.Denied, true, "check notify.email.tls and notify.email.user: the server does not offer what they need"
	}
	return e
}
