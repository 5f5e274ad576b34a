package notify

import (
	"crypto/rand"
	"fmt"
	"slices"
	"time"
)

// rateWindow is the time in which at most [Options.Rate] messages are sent.
const rateWindow = time.Hour

// summaryDelay is the delay after which a summary that no target took is sent again.
const summaryDelay = time.Minute

// rate counts the messages of one owner in the last hour, and those that were left out. It ends
// with the process; each message that is left out is a line of the log too.
type rate struct {
	sent    []admitted // oldest first
	left    int        // left out, and not reported
	since   time.Time  // of the first one of them
	timer   *time.Timer
	pending bool // the timer is set, or a summary is being sent
}

type admitted struct {
	id string
	at time.Time
}

// admit reports whether a message may be sent now. A repetition of one that was sent in the last
// hour may. If it may not, it is counted, and a summary follows as soon as a message may be sent.
func (s *Service) admit(m Message, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opt.Rate <= 0 {
		return true
	}
	now := s.opt.Now()
	r := s.rates[m.Owner]
	if r == nil {
		r = new(rate)
		s.rates[m.Owner] = r
	}
	r.forget(now)
	if slices.ContainsFunc(r.sent, func(a admitted) bool { return a.id == id }) {
		return true
	}
	if len(r.sent) < s.opt.Rate && r.left == 0 { // else the summary is next
		r.sent = append(r.sent, admitted{id, now})
		return true
	}
	if r.left == 0 {
		r.since = now
	}
	r.left++
	s.opt.Logger.Warn("a message is left out, because notify.rate is reached", "by", m.By, "title", m.Title, "run", m.Run, "ticket", m.Ticket, "rate", s.opt.Rate)
	if !r.pending && !s.closed {
		s.scheduleSummary(m.Owner, r, r.sent[0].at.Add(rateWindow).Sub(now))
	}
	return false
}

// forget removes what is older than an hour.
func (r *rate) forget(now time.Time) {
	i := slices.IndexFunc(r.sent, func(a admitted) bool { return now.Sub(a.at) < rateWindow })
	if i < 0 {
		i = len(r.sent)
	}
	r.sent = slices.Delete(r.sent, 0, i)
}

// scheduleSummary has the summary for an owner sent after a delay. The caller holds s.mu.
func (s *Service) scheduleSummary(owner string, r *rate, delay time.Duration) {
	r.pending = true
	s.background.Add(1)
	r.timer = time.AfterFunc(delay, func() {
		defer s.background.Done()
		s.summarize(owner, r)
	})
}

// summarize sends the message that says how many of an owner were left out.
func (s *Service) summarize(owner string, r *rate) {
	id := "msg_" + rand.Text()
	s.mu.Lock()
	now := s.opt.Now()
	left, since := r.left, r.since
	r.left = 0
	r.forget(now)
	r.sent = append(r.sent, admitted{id, now})
	s.mu.Unlock()
	whose, messages, were := "", "messages", "were"
	if owner != "" {
		whose = " of " + s.opt.Hide(owner)
	}
	if left == 1 {
		messages, were = "message", "was"
	}
	m := Message{
		Title: fmt.Sprintf("%d %s%s %s left out", left, messages, whose, were), Severity: Warning,
		Text: fmt.Sprintf("Since %s more messages were due than the %d in an hour that notify.rate allows. The log of the server has their titles.\n\nsentinel inbox\nsentinel list", since.UTC().Format(time.RFC3339), s.opt.Rate),
	}
	_, err := s.deliver(s.ctx, s.targets(), m, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	r.pending = false
	delay := time.Duration(0)
	if err != nil {
		s.opt.Logger.Warn("how many messages were left out could not be sent, this is tried again", "messages", left, "error", err)
		r.left, r.since, delay = r.left+left, since, summaryDelay
	} else if len(r.sent) >= s.opt.Rate {
		delay = r.sent[0].at.Add(rateWindow).Sub(now)
	}
	if r.left > 0 && !s.closed {
		s.scheduleSummary(owner, r, delay)
	}
}

// Close ends what the Service does in the background. It is idempotent.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	for _, r := range s.rates {
		if r.pending && r.timer.Stop() {
			s.background.Done()
		}
	}
	s.mu.Unlock()
	s.cancel()
	s.background.Wait()
	s.mu.Lock()
	left := 0
	for _, r := range s.rates {
		left += r.left
	}
	s.mu.Unlock()
	if left > 0 {
		s.opt.Logger.Warn("messages were left out, and the summary of them was not sent", "messages", left)
	}
}
