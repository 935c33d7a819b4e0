package blobs

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"antipode/api/protocol"
	"antipode/api/wire"
	"antipode/geo"
	"antipode/services"
	"antipode/services/storageerr"
	"antipode/stamp/kv"
)

// scan reads from a snapshot of a range, within the budget of a page that begins now. Both
// end when read returns or panics: the slot that the budget may hold is the process's, and
// the store's Close waits for the snapshot.
func scan[T any](c *call, r geo.RangeID, read func(kv.Reader, *services.Budget) (T, error)) (out T, err error) {
	snap, err := c.snapshot(r)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	budget := c.o.Scans.Begin(c.ctx, c.r.Account.Name)
	defer budget.End()
	return read(snap, budget)
}

// answers is the memory of the answers that the service holds at once, those whose
// clients take them slowly included.
//
// Half of it is left to what every answer needs to begin: a listing's first window, the
// one window of a block list. The other half is for what makes answers long or fast, and
// nobody waits for it: a page that finds none ends where it is, with a marker, and a
// download goes on in smaller parts. So clients that take nothing make the answers of the
// others short before one has to wait. One account has half of what answers begin with at
// most, so that those of the others begin. The obvious design, to send a listing in windows
// while it is read, bounds less: it keeps a snapshot of the store open for as long as the
// client likes, or answers one page from several states, and an error behind the first
// window can only break the answer off.
type answers struct {
	*protocol.InFlight
	// begins is the half that answers begin with. It is part of InFlight, where it therefore
	// never waits.
	begins  *protocol.InFlight
	windows protocol.Windows
	moreMax int64
	more    atomic.Int64 // of moreMax, held
}

func newAnswers(bytesMax int64) *answers {
	return &answers{InFlight: protocol.NewInFlight(bytesMax), begins: protocol.NewInFlight(bytesMax - bytesMax/2), moreMax: bytesMax / 2}
}

// reserve takes n bytes of what nobody waits for.
func (a *answers) reserve(n int64) bool {
	if a.more.Add(n) > a.moreMax {
		a.more.Add(-n)
		return false
	}
	return true
}

// room is what the answers of all accounts may hold. It is not divided: half of it is what
// nobody waits for, and an account that took all of that would leave itself nothing to begin
// with. The other half is: see begin.
func (c *call) room() protocol.Room { return c.answers.InFlight }

// hold takes n bytes without a wait, until drop is called; ok is false if there is no room.
func (c *call) hold(n int64) (drop func(), ok bool) {
	if !c.answers.reserve(n) {
		return nil, false
	}
	held, ok := c.room().TryAdmit(n)
	if !ok {
		c.answers.more.Add(-n)
		return nil, false
	}
	return func() {
		c.room().Release(held)
		c.answers.more.Add(-n)
	}, true
}

// begin waits until an answer may begin with n bytes of its account's share, until end is
// called. They are to be taken from room.
func (c *call) begin(ctx context.Context, n int64) (end func(), err error) {
	share := c.answers.begins.Of(c.r.Account.Name)
	held, err := share.Admit(ctx, n)
	return func() { share.Release(held) }, err
}

// page is the document of one page of a listing. Close it.
type page struct {
	*call
	doc      *protocol.Document
	end      func() // of begin
	more     int64  // held of answers.more
	items    int
	itemsMax int
	scratch  []byte
}

const (
	// pageBytesMax is where a page ends although items are left: metadata may be 8 KiB
	// each. A page may be shorter than maxresults (protocol/blob.md 7.2).
	pageBytesMax = 4 << 20
	// tailBytesMax bounds what follows the items: the marker of a name of 1024 UTF-16
	// units, and the ends of the elements.
	tailBytesMax = 5 << 10
)

// newPage waits until a page may begin, and begins it with head.
func (c *call) newPage(itemsMax int, head []byte) (*page, error) {
	ctx, cancel := context.WithTimeout(c.ctx, lookupMax)
	defer cancel()
	end, err := c.begin(ctx, protocol.WindowBytes)
	if err != nil {
		return nil, err
	}
	doc, err := c.answers.windows.Document(ctx, c.room(), protocol.WindowBytes, 0)
	if err != nil {
		end()
		return nil, err
	}
	p := &page{call: c, doc: doc, end: end, itemsMax: itemsMax}
	if !p.append(head) {
		p.close()
		return nil, storageerr.ServerBusy
	}
	return p, nil
}

// take appends an item as render writes it, and reports whether it did: the page ends
// before an item that it has no room for. ServerBusy where that is the first.
func (p *page) take(render func(b []byte) []byte) (taken bool, err error) {
	if p.items == p.itemsMax || p.doc.Len() >= pageBytesMax {
		return false, nil
	}
	p.scratch = render(p.scratch[:0])
	switch {
	case p.append(p.scratch):
		p.items++
		return true, nil
	case p.items == 0:
		return false, storageerr.ServerBusy
	}
	return false, nil
}

// append appends text where the tail still fits behind it.
func (p *page) append(text []byte) bool {
	n := len(text) + tailBytesMax
	if !p.doc.Fits(n) {
		more := int64(max(n, protocol.WindowBytes))
		if !p.answers.reserve(more) {
			return false
		}
		if !p.doc.Grow(n) {
			p.answers.more.Add(-more)
			return false
		}
		p.more += more
	}
	p.doc.Append(func(dst []byte) []byte { return append(dst, text...) })
	return true
}

// answer ends the page and sends it. next is the marker of the next one.
func (p *page) answer(ends string, next string) {
	p.doc.Append(func(dst []byte) []byte {
		return append(wire.AppendElement(append(dst, ends...), "NextMarker", next), "</EnumerationResults>"...)
	})
	p.writeHead(&head{status: http.StatusOK, contentType: "application/xml", length: uint64(p.doc.Len())})
	p.doc.WriteTo(p.w)
}

func (p *page) close() {
	p.doc.Close()
	p.end()
	p.answers.more.Add(-p.more)
	p.more = 0
}
