package protocol

import (
	"context"

	"antipode/geo"
)

// Share is an account's part of an InFlight, for who needs to know how much it holds
// before it begins: a page of an answer.
type Share struct {
	f       *InFlight
	account geo.Account
}

// Of returns an account's share. The one of "" is bounded by the whole only.
func (f *InFlight) Of(account geo.Account) Share { return Share{f, account} }

// Admit waits until n bytes may be held, the oldest first, and returns what to Release: n,
// or the account's share for what is larger. ServerBusy where ctx ends before: nothing
// happened.
func (s Share) Admit(ctx context.Context, n int64) (held int64, err error) {
	h := s.f.begin(s.account)
	err = h.Take(ctx, n)
	return s.keep(h), err
}

// TryAdmit is Admit that does not wait; ok is false where it would.
func (s Share) TryAdmit(n int64) (held int64, ok bool) {
	h := s.f.begin(s.account)
	s.f.mu.Lock()
	h.once = true
	n = h.counted(n)
	if ok = s.f.fits(h, n); ok {
		s.f.take(h, n)
	}
	s.f.mu.Unlock()
	return s.keep(h), ok
}

// keep ends a hold and leaves what it holds to the share.
func (s Share) keep(h *Hold) (held int64) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	held = h.held
	s.f.leaveFirst(h)
	s.f.dropShare(h.account, h.share)
	s.f.grant()
	return held
}

// dropShare forgets an account that holds nothing, as one of its holds ends.
func (f *InFlight) dropShare(account geo.Account, share *accountShare) {
	if share.holds--; share.holds == 0 && share.held == 0 {
		delete(f.accounts, account)
	}
}

// Release gives back what Admit returned.
func (s Share) Release(held int64) {
	if held == 0 {
		return
	}
	f := s.f
	f.mu.Lock()
	defer f.mu.Unlock()
	share := f.accounts[s.account]
	share.held -= held
	f.held -= held
	if share.holds == 0 && share.held == 0 {
		delete(f.accounts, s.account)
	}
	f.grant()
}

// Admit is Share.Admit for no account in particular.
func (f *InFlight) Admit(ctx context.Context, n int64) (held int64, err error) {
	return f.Of("").Admit(ctx, n)
}

// TryAdmit is Share.TryAdmit for no account in particular.
func (f *InFlight) TryAdmit(n int64) (held int64, ok bool) { return f.Of("").TryAdmit(n) }

// Release gives back what Admit returned.
func (f *InFlight) Release(held int64) { f.Of("").Release(held) }
