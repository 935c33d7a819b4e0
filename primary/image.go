package primary

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"antipode/geo"
	"antipode/services/storageerr"
	"antipode/stamp/change"
	"antipode/stamp/keys"
	"antipode/stamp/ranges"
	"antipode/stamp/route"
)

// An image of an account's rows in a range is what a copy that begins empty needs (R17): every row,
// numbered in the stream of its partition like any other change. A step reads the next rows at its
// evaluation, so that they hold all changes that are numbered before, and commits them in one group with
// the place up to which it came. So an image needs no order with the streams but theirs: it goes on where
// it was after any crash.
//
// The copy begins empty, in the group that opens its gate for the epoch, and the range numbers all changes
// of the account in that epoch, those before and during the image too. So once the image is applied, the
// copy has every row that the range had then, and no other.

// The bounds of a step. A row that is larger makes a step alone.
const (
	imageRowsMax    = 256
	imageBytesMax   = 128 << 10
	imagePayloadMax = 8 << 20
	// imageAheadMax is how many bytes of records of the account, and imageAheadPayloadMax how many of payload, may wait
	// in the outbox before a step waits for the other location: an image must not pass the outbox's budget (R18). Where
	// clients alone keep as much on its way, a step follows each time that so much was acknowledged.
	imageAheadMax        = 4 << 20
	imageAheadPayloadMax = 64 << 20
)

// ImageBounds bound an image more narrowly than production does, for tests with little data.
type ImageBounds struct {
	// Rows bounds a step. Zero means 256.
	Rows int `json:",omitempty"`
	// Ahead is how many bytes, of records or of payload, may wait before a step waits. Zero means 4 MiB, and 64 MiB of
	// payload.
	Ahead uint64 `json:",omitempty"`
}

func (b ImageBounds) rows() int { return cmp.Or(b.Rows, imageRowsMax) }

// isAhead reports whether enough waits for the other location.
func (b ImageBounds) isAhead(v change.Volume) bool {
	return v.Bytes > cmp.Or(b.Ahead, imageAheadMax) || v.Payload > cmp.Or(b.Ahead, imageAheadPayloadMax)
}

// errImageEpoch: the account is not shipped from here in the epoch of the image.
var errImageEpoch = storageerr.ServerBusy.Saying("the range does not ship the account in the epoch of its image")

// StepImage commits the next step of the image of an account's rows in a range, in an epoch in
// which the range numbers the account's changes; else ServerBusy. Steps of one image must not
// run at the same time. An image that has not begun is left as it is: see BeginImage. A step ends at bytesMax bytes of
// rows and payload, if that is not 0, but takes a row at least.
func (p *Primary) StepImage(ctx context.Context, d route.Range, a geo.Account, e geo.Epoch, bytesMax uint64) (ranges.ImageStep, error) {
	cmd := &image{service: d.Service, account: a, epoch: e, bytesMax: bytesMax, bounds: p.Images}
	if err := p.stamp.Submit(ctx, d.ID, cmd); err != nil {
		return ranges.ImageStep{}, err // It may be evaluated yet.
	}
	return cmd.out, nil
}

// BeginImage commits that the image of an account's rows in a range begins in an epoch, and what was
// counted there. One that has begun in the epoch stays as it is. Errors as of StepImage.
func (p *Primary) BeginImage(ctx context.Context, d route.Range, a geo.Account, e geo.Epoch, counted change.ImageSize) error {
	return p.stamp.Submit(ctx, d.ID, &image{service: d.Service, account: a, epoch: e, counted: &counted})
}

// image is the command of a step.
type image struct {
	service geo.Service
	account geo.Account
	epoch   geo.Epoch
	// counted begins the image with this total; nil goes on with it.
	counted  *change.ImageSize
	bytesMax uint64
	bounds   ImageBounds
	out      ranges.ImageStep
}

// Evaluate implements ranges.Command.
func (c *image) Evaluate(tx *ranges.Tx) error {
	c.out = ranges.ImageStep{}
	gate := tx.Gate(c.account)
	if gate.Role != change.RolePrimary || !gate.Open || !gate.Numbered || gate.Epoch != c.epoch {
		return errImageEpoch
	}
	m, err := tx.Image(c.account)
	if err != nil {
		return err
	}
	if c.counted != nil {
		if m.Epoch != c.epoch {
			tx.SetImage(c.account, change.Image{Epoch: c.epoch, Total: *c.counted})
		}
		return nil
	}
	if m.Epoch != c.epoch {
		c.out = ranges.ImageStep{Uncounted: true}
		return nil
	}
	if m.Done != nil {
		c.out = ranges.ImageStep{Image: m, Applied: c.applied(tx, m)}
		return nil
	}
	if c.bounds.isAhead(tx.Waiting(c.account)) && !c.bounds.isAhead(tx.AckedSinceImage(c.account)) {
		c.out = ranges.ImageStep{Image: m, Held: true}
		return nil
	}
	before := m.Copied
	if err := c.copy(tx, &m); err != nil {
		return err
	}
	c.out.Took = m.Copied.Less(before)
	tx.SetImage(c.account, m)
	c.out.Image = m
	return nil
}

// Rehearses implements ranges.Rehearsed.
func (*image) Rehearses() (always bool) { return false }

// copy stages the next rows, and sets in m how far it came.
func (c *image) copy(tx *ranges.Tx, m *change.Image) error {
	from, to := accountRows(tx, c.service, c.account)
	if m.Next != nil {
		from = m.Next
	}
	var step change.ImageSize
	var rows []row
	var failed error
	var last keys.Partition
	var lastOpen bool
	// Rows of a closed generation are left out: the other location would drop them.
	open := func(p keys.Partition) bool {
		if p.Object = ""; p != last {
			last, lastOpen = p, true
			if p.Generation != (keys.Generation{}) {
				var closed bool
				closed, failed = tx.GenerationClosed(keys.ClosedGeneration(tx.Range(), p.Service, p.Account, p.Container, p.Generation))
				lastOpen = !closed
			}
		}
		return lastOpen
	}
	whole := true
	err := tx.Rows(from, to, func(key, value []byte) bool {
		if c.full(step) {
			m.Next, whole = key, false
			return false
		}
		var r row
		if r, failed = rowOf(key, value, true); failed != nil {
			return false
		}
		if step = step.Add(sizeOf(key, r)); open(r.partition) {
			rows = append(rows, r)
		}
		return failed == nil
	})
	if err = errors.Join(err, failed); err != nil {
		return fmt.Errorf("image of account %s: %w", c.account, err)
	}
	rows = slices.DeleteFunc(rows, func(r row) bool { return c.settles(tx, r.partition.Lane()) })
	if err := stageRows(tx, rows); err != nil {
		return err
	}
	m.Copied = m.Copied.Add(step)
	if whole {
		m.Total = m.Copied // What was counted is not needed any more.
		m.Next, m.Done = nil, make([]geo.Seq, geo.LaneCount)
		for lane := range m.Done {
			m.Done[lane] = tx.Head(c.stream(tx, geo.Lane(lane))).Seq
		}
	}
	return nil
}

// full reports whether a step takes no more rows.
func (c *image) full(step change.ImageSize) bool {
	return step.Rows >= uint64(c.bounds.rows()) || step.Bytes >= imageBytesMax || step.Payload >= imagePayloadMax ||
		c.bytesMax > 0 && step.Bytes+step.Payload >= c.bytesMax
}

// settles reports whether a stream ends here, or goes on once its lane was compared as a whole (R16). So it needs nothing of
// the image: behind the base of a settlement that would undo what the other location alone has.
func (c *image) settles(tx *ranges.Tx, lane geo.Lane) bool {
	why, _ := tx.Stopped(c.stream(tx, lane))
	return why.Reason.Settles() || why.Reason.MaySettle()
}

func (c *image) stream(tx *ranges.Tx, lane geo.Lane) geo.Stream {
	return geo.Stream{Account: c.account, Epoch: c.epoch, Range: tx.Range(), Lane: lane}
}

// applied reports whether the other location has acknowledged all records of a finished image.
func (c *image) applied(tx *ranges.Tx, m change.Image) bool {
	for lane, n := range m.Done {
		s := c.stream(tx, geo.Lane(lane))
		if _, stopped := tx.Stopped(s); stopped || tx.Acknowledged(s) < n {
			return false
		}
	}
	return true
}

func sizeOf(key []byte, r row) change.ImageSize {
	s := change.ImageSize{Rows: 1, Bytes: uint64(len(key) + len(r.op.Value))}
	for _, ref := range r.chunks {
		s.Payload += uint64(ref.Length)
	}
	return s
}

// kindImage is the kind of image. It is on the wire: never rename it.
const kindImage = "primary.image"

// errImage reports bytes that are no step of an image, or no outcome of one.
var errImage = errors.New("primary: malformed step of an image")

// Kind implements ranges.Portable.
func (c *image) Kind() string { return kindImage }

// imageBody is an encoded step.
type imageBody struct {
	Account  geo.Account
	Service  geo.Service
	Epoch    geo.Epoch
	Counted  *change.ImageSize `json:",omitempty"`
	BytesMax uint64            `json:",omitempty"`
	ImageBounds
}

// Encode implements ranges.Portable.
func (c *image) Encode() []byte {
	b, _ := json.Marshal(imageBody{c.account, c.service, c.epoch, c.counted, c.bytesMax, c.bounds}) // It has no value that JSON lacks.
	return b
}

func parseImage(b []byte) (ranges.Portable, error) {
	var body imageBody
	if err := json.Unmarshal(b, &body); err != nil {
		return nil, fmt.Errorf("%w: %w", errImage, err)
	}
	if !body.Account.Valid() {
		return nil, fmt.Errorf("%w: account %q", errImage, body.Account)
	}
	return &image{
		account: body.Account, service: body.Service, epoch: body.Epoch, counted: body.Counted, bytesMax: body.BytesMax, bounds: body.ImageBounds,
	}, nil
}

// EncodeResult implements ranges.Portable.
func (c *image) EncodeResult() []byte {
	b, _ := json.Marshal(c.out) // It has no value that JSON lacks.
	return b
}

// DecodeResult implements ranges.Portable.
func (c *image) DecodeResult(b []byte) error {
	var out ranges.ImageStep
	if err := json.Unmarshal(b, &out); err != nil {
		return fmt.Errorf("%w: %w", errImage, err)
	}
	c.out = out
	return nil
}
